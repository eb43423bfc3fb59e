/** A line of a difference; `gap` is a number of equal lines that are left out. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed' | 'gap'
  readonly text: string
}

/** Equal lines around a change. */
const CONTEXT = 3
/** Larger parts that differ are shown as replaced, because the comparison takes time by the product of their lines. */
const MAX_PRODUCT = 4_000_000

/** The difference of two texts by lines, with three lines around each change. Empty if they are equal. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let tail = 0
  while (tail < Math.min(before.length, after.length) - start && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++
  const middle = compare(before.slice(start, before.length - tail), after.slice(start, after.length - tail))
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return shorten([...before.slice(0, start).map(same), ...middle, ...before.slice(before.length - tail).map(same)])
}

/** The longest common subsequence. */
function compare(before: readonly string[], after: readonly string[]): DiffLine[] {
  const removed = before.map((text): DiffLine => ({ kind: 'removed', text }))
  const added = after.map((text): DiffLine => ({ kind: 'added', text }))
  if (before.length * after.length > MAX_PRODUCT) return [...removed, ...added]
  const width = after.length + 1
  // Length of the common subsequence of the rests that begin at a line of each.
  const lengths = new Uint32Array((before.length + 1) * width)
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0
  for (let row = before.length - 1; row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--)
      lengths[row * width + column] = before[row] === after[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
  const lines: DiffLine[] = []
  let [row, column] = [0, 0]
  while (row < before.length || column < after.length) {
    if (row < before.length && column < after.length && before[row] === after[column]) {
      lines.push({ kind: 'same', text: before[row] ?? '' })
      row++
      column++
    } else if (column >= after.length || (row < before.length && at(row + 1, column) >= at(row, column + 1))) lines.push(removed[row++] as DiffLine)
    else lines.push(added[column++] as DiffLine)
  }
  return lines
}

function shorten(lines: readonly DiffLine[]): DiffLine[] {
  const isNear = lines.map(() => false)
  for (const [index, { kind }] of lines.entries()) if (kind !== 'same') isNear.fill(true, Math.max(0, index - CONTEXT), index + CONTEXT + 1)
  if (!isNear.includes(true)) return []
  const shown: DiffLine[] = []
  let skipped = 0
  const close = (): void => {
    if (skipped > 0) shown.push({ kind: 'gap', text: String(skipped) })
    skipped = 0
  }
  for (const [index, line] of lines.entries()) {
    if (isNear[index] === true) {
      close()
      shown.push(line)
    } else skipped++
  }
  close()
  return shown
}
