/**
 * Creates a function that picks an index with a probability proportional to its weight. Undefined if no weight is positive.
 * `random` is uniform in [0, 1).
 */
export function createWeightedPicker(weights: readonly number[], random: () => number): (() => number) | undefined {
  const indices: number[] = []
  const bounds: number[] = []
  let total = 0
  weights.forEach((weight, index) => {
    if (!(weight > 0)) return
    total += weight
    indices.push(index)
    bounds.push(total)
  })
  const [first] = indices
  if (first === undefined) return undefined
  if (indices.length === 1) return () => first
  const last = indices.length - 1
  return () => {
    const point = random() * total
    for (let i = 0; i < last; i++) if (point < (bounds[i] ?? 0)) return indices[i] ?? first
    return indices[last] ?? first
  }
}
