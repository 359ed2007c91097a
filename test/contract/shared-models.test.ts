/** Every model beside the repository fulfils the contract, and one that is changed does not. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type ContractInput, checkContract } from '../../src/contract/index.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { readHyperparameters } from '../../src/models/hyperparameters.ts';
import { architectureOf } from '../../src/models/index.ts';
import { openFileSource } from '../../src/platform/node/file-source.ts';
import { sharedFiles } from '../repository.ts';
import { skipped } from '../skip.ts';

const paths = sharedFiles('models');
if (paths.length === 0) {
  skipped(32, 'no ../shared: its models were not checked');
}

async function contractOf(path: string): Promise<ContractInput> {
  const source = await openFileSource(path);
  const { tensors, metadata } = await openModel(source);
  await source.close();
  const hyperparameters = readHyperparameters(metadata);
  const specialTokens: Record<string, number> = {};
  for (const key of metadata.keys()) if (/_token_id$/.test(key)) specialTokens[key] = metadata.uint(key)!;
  return {
    sourceName: path,
    tensors,
    expected: architectureOf(hyperparameters.architecture, path).tensors(hyperparameters),
    supportedTypes: new Set([...tensors.values()].map(({ type }) => type.name)),
    hyperparameters,
    vocabulary: { size: metadata.strings('tokenizer.ggml.tokens')!.length, specialTokens },
  };
}

for (const path of paths) {
  test(path.slice(path.lastIndexOf('/') + 1), async () => {
    const input = await contractOf(path);
    assert.equal(checkContract(input), []);
    for (const name of input.tensors.keys()) {
      const tensors = new Map(input.tensors);
      tensors.delete(name);
      const optional = input.expected.find((tensor) => tensor.name === name)?.optional === true;
      assert.equal(
        checkContract({ ...input, tensors }).map(({ tensor }) => tensor),
        optional ? [] : [name],
      );
      const { type, byteLength, shape } = input.tensors.get(name)!;
      tensors.set(name, { type, byteLength, shape: [...shape.slice(0, -1), shape.at(-1)! + 1] });
      assert.equal(
        checkContract({ ...input, tensors }).map(({ tensor }) => tensor),
        [name],
      );
    }
  });
}

test.run();
