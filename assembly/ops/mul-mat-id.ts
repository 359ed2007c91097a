/**
 * Products with the experts that each row was routed to.
 *
 * A routing row is `slots` i32 expert ids, then `slots` f32 weights. The plan made of it, all i32:
 *
 *   0  active                       experts that have any row
 *   4  bytes from the plan to `shared`, 8 bytes to `perSlot`
 *   16 entries [maxActive] of 16 bytes: expert, first pair, pairs, (unused); experts ascending
 *      counts  [experts]            scratch of route_plan
 *      shared  [rows · slots] pairs (row, row · slots + slot): all slots of a row read the same x
 *      perSlot [rows · slots] pairs (row · slots + slot, row · slots + slot)
 *
 * with maxActive = min(experts, rows · slots). The pairs of an expert are in ascending order.
 */

import { GROUP_ROWS } from '../quants/ids';
import { group_bytes } from '../quants/types';
import { mul_group } from './mul-mat';

const ENTRIES: usize = 16;

function max_active(rows: i32, slots: i32, experts: i32): i32 {
  return min(experts, rows * slots);
}

export function plan_bytes(rows: i32, slots: i32, experts: i32): u32 {
  return <u32>(16 + max_active(rows, slots, experts) * 16 + experts * 4 + rows * slots * 16);
}

/** Makes the plan. One item. Traps when an id is no expert's: whoever made the routing promises that it is. */
export function route_plan(
  start: i32,
  end: i32,
  scratch: usize,
  plan: usize,
  routing: usize,
  rows: i32,
  slots: i32,
  experts: i32,
): void {
  if (start >= end) return;
  const counts = plan + ENTRIES + ((<usize>max_active(rows, slots, experts)) << 4);
  const shared = counts + ((<usize>experts) << 2);
  const perSlot = shared + ((<usize>rows * <usize>slots) << 3);
  memory.fill(counts, 0, (<usize>experts) << 2);
  const rowBytes = (<usize>slots) << 3;
  for (let row = 0; row < rows; row++) {
    for (let slot = 0; slot < slots; slot++) {
      const expert = load<u32>(routing + <usize>row * rowBytes + (slot << 2));
      if (expert >= <u32>experts) unreachable();
      const count = counts + ((<usize>expert) << 2);
      store<u32>(count, load<u32>(count) + 1);
    }
  }
  let active = 0;
  let first = 0;
  for (let expert = 0; expert < experts; expert++) {
    const count = load<i32>(counts + ((<usize>expert) << 2));
    if (count == 0) continue;
    const entry = plan + ENTRIES + ((<usize>active) << 4);
    store<i32>(entry, expert);
    store<i32>(entry, first, 4);
    store<i32>(entry, count, 8);
    // From here on: where the expert's next pair goes.
    store<i32>(counts + ((<usize>expert) << 2), first);
    first += count;
    active++;
  }
  store<i32>(plan, active);
  store<usize>(plan, shared - plan, 4);
  store<usize>(plan, perSlot - plan, 8);
  for (let row = 0; row < rows; row++) {
    for (let slot = 0; slot < slots; slot++) {
      const expert = load<u32>(routing + <usize>row * rowBytes + (slot << 2));
      const next = counts + ((<usize>expert) << 2);
      const at = load<u32>(next);
      store<u32>(next, at + 1);
      const place = (<usize>at) << 3;
      const out = row * slots + slot;
      store<i32>(shared + place, row);
      store<i32>(shared + place, out, 4);
      store<i32>(perSlot + place, out);
      store<i32>(perSlot + place, out, 4);
    }
  }
}

/**
 * dst[(row · slots + slot) · dstStride + r] = expert's row r · x, for all pairs of the plan. `x` holds xRows rows: one
 * a row (perSlot 0) or one a row and slot (perSlot 1). `expertStride` is in bytes. Items: maxActive · groups, the
 * groups of an expert side by side; those beyond the active experts do nothing.
 */
export function mul_mat_id(
  start: i32,
  end: i32,
  scratch: usize,
  type: i32,
  dst: usize,
  dstStride: i32,
  weights: usize,
  expertStride: usize,
  width: i32,
  rows: i32,
  x: usize,
  xRows: i32,
  plan: usize,
  perSlot: i32,
): void {
  const groups = (rows + GROUP_ROWS - 1) / GROUP_ROWS;
  const active = load<i32>(plan);
  const list = plan + load<usize>(plan + (perSlot ? 8 : 4));
  const bytes: usize = group_bytes(type, width);
  for (let item = start; item < end; item++) {
    const slot = item / groups;
    if (slot >= active) return;
    const g = item - slot * groups;
    const entry = plan + ENTRIES + ((<usize>slot) << 4);
    const row = g * GROUP_ROWS;
    const group = weights + load<usize>(entry) * expertStride + <usize>g * bytes;
    const pairs = list + (load<usize>(entry, 4) << 3);
    mul_group(
      scratch,
      type,
      dst + ((<usize>row) << 2),
      dstStride,
      group,
      width,
      min(GROUP_ROWS, rows - row),
      x,
      xRows,
      pairs,
      load<i32>(entry, 8),
    );
  }
}
