/**
 * One text as each pre-tokeniser cuts it, a bar at each cut. Ids that follow from the cuts were compared with llama.cpp's on
 * random texts (node-llama-cpp 3.21.1; it has no ufakzeka and spark2_5).
 */

export const TEXT =
  "I'LL don't  HTTPServer Été cafe\u0301! e f 1234567 ½٣ $x~y`--> ok.\r\n\n  \t日本カナ。한글 ㄅ a/b//\n𐐀 \u200b\u0001z <sentinel:12>IMGIMGAZ    ";

export const CUTS: Readonly<Record<string, string>> = {
  default:
    "I|'|LL| don|'|t| | HTTPServer| Été| cafe|\u0301|!| e| f| |123|456|7| |½٣| |$|x|~|y|`|-->| ok|.|\r\n\n  |\t|日本カナ|。|한글| ㄅ| a|/|b|//|\n|𐐀| \u200b\u0001|z| |<|sentinel|:|12|>|IMGIMGAZ|    ",
  'gpt-2':
    "I|'|LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| 1234567| ½٣| $|x|~|y|`-->| ok|.|\r\n\n  |\t|日本カナ|。|한글| ㄅ| a|/|b|//|\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>|IMGIMGAZ|    ",
  smollm:
    "I|'|LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~|y|`-->| ok|.|\r\n\n  |\t|日本カナ|。|한글| ㄅ| a|/|b|//|\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>|IMGIMGAZ|    ",
  falcon:
    "I|'|LL| don|'|t| | HTTPServer| Été| cafe|\u0301|!| e| f| |123|456|7| ½٣| |$|x|~|y|`-->| ok|.|\r\n\n  |\t|日本カナ|。|한글| ㄅ| a|/|b|//|\n|𐐀| \u200b\u0001|z| |<|sentinel|:|12|>|IMGIMGAZ|    ",
  qwen2:
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  qwen35:
    "I|'LL| don|'t| | HTTPServer| Été| cafe\u0301|!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  'seed-coder':
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.|\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//|\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  ufakzeka:
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  'exaone-moe':
    "I|'LL| don|'t| | HTTPServer Été cafe\u0301|!| e f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r|\n\n|  |\t日本カナ|。한글 ㄅ a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  laguna:
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r|\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//|\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  dbrx: "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  llama3:
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  'jais-2':
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  minicpm5:
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  'kimi-k2':
    "I'LL| don't| | HTTPServer| Été| cafe|\u0301!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t|日本|カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  tekken:
    "I|'LL| don|'t| | HTTPServer| Été| cafe|\u0301!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  'gpt-4o':
    "I'LL| don't| | HTTPServer| Été| cafe|\u0301!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  'granite-embed-multi-97m':
    "I'LL| don't| | HTTPServer| Été| cafe\u0301|!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  tiny_aya:
    "I'LL| don't| | HTTPServer| Été| cafe\u0301|!| e| f| |1|234|567| |½٣| $|x|~y|`-->| ok|.\r\n\n|  |\t日本カナ|。한글| ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|12|>IMGIMGAZ|    ",
  youtu:
    "I'LL| don't| | HTTPServer| Été| cafe\u0301|!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.\r\n\n|  \t|日本カナ|。|한글| |ㄅ| a|/b|//\n|𐐀| \u200b\u0001|z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  superbpe:
    "I'LL don't  HTTPServer Été cafe\u0301! e f |1|234|567| |½٣| $x~y`--> ok.\r\n\n  \t日本カナ。한글 ㄅ a/b//\n𐐀 \u200b\u0001z <sentinel:|12|>IMGIMGAZ    ",
  'deepseek-coder':
    "I|'|LL| don|'|t| | HTTPServer| Été| cafe|\u0301|!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~|y|`|--|>| ok|.|\r|\n|\n|  |\t|日本カナ|。|한글| |ㄅ| a|/|b|//|\n|𐐀| |\u200b|\u0001|z| <|sentinel|:|1|2|>|IMGIMGAZ|    ",
  'deepseek-llm':
    "I|'|LL| don|'|t| | HTTPServer| É|t|é| cafe|\u0301|!| e| f| |1234567| |½٣| $|x|~|y|`-->| ok|.|\r|\n|\n|  \t|日本カナ|。|한글| |ㄅ| a|/|b|//|\n|𐐀| |\u200b|\u0001|z| <|sentinel|:|12|>|IMGIMGAZ|    ",
  'deepseek-v3':
    "I|'LL| don|'t| | HTTPServer| Été| cafe\u0301|!| e| f| |123|456|7| |½٣| $|x|~y|`-->| ok|.\r\n\n|  \t|日本カナ|。|한글| ㄅ| a|/b|//\n|𐐀| |\u200b|\u0001z| <|sentinel|:|12|>IMGIMGAZ|    ",
  spark2_5:
    "I|'LL| don|'t| | HTTPServer| Été| cafe\u0301|!| e| f| |1|2|3|4|5|6|7| |½|٣| $|x|~y|`-->| ok|.|\r|\n|\n|  \t|日本カナ|。|한글| ㄅ| a|/b|//|\n|𐐀| |\u200b|\u0001z| <|sentinel|:|1|2|>IMGIMGAZ|    ",
  afmoe:
    "I|'LL| don|'t| | HTTPServer| Été| cafe\u0301|!| e| f| |1|234|567| |½٣| $|x|~y|`-->| ok|.\r\n\n|  \t|日本カナ|。|한글| ㄅ| a|/b|//\n|𐐀| |\u200b|\u0001z| <|sentinel|:|12|>IMGIMGAZ|    ",
  'poro-chat':
    "I'LL| don't| | HTTPServer| Été| cafe\u0301|!| e| f| 1234567| ½٣| $x~y`-->| ok|.\r\n\n  \t|日本カナ|。|한글| ㄅ| a/b//|\n|𐐀| \u200b\u0001z| <sentinel:12>IMGIMGAZ|    ",
  viking:
    "I'LL| don't| | HTTPServer| Été| cafe\u0301|!| e| f| |1|2|3|4|5|6|7| |½|٣| $x~y`-->| ok|.\r\n\n  \t|日本カナ|。|한글| ㄅ| a/b//|\n|𐐀| \u200b\u0001z| <sentinel:|1|2|>IMGIMGAZ|    ",
  chameleon:
    "I|'|LL| don|'|t|  |HTTPServer| Été| cafe|\u0301|!| e| f| |1|2|3|4|5|6|7| |½|٣| |$|x|~|y|`|-|-|>| ok|.|\r|\n|\n|  |\t|日本カナ|。|한글| ㄅ| a|/|b|/|/|\n|𐐀| \u200b\u0001|z| |<|sentinel|:|1|2|>|IMGIMGAZ|    ",
};
