/** Whether one of the patterns matches. */
export function compilePatterns(patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const matchers = patterns.filter((pattern) => pattern.includes('*')).map(compilePattern)
  return (name) => exact.has(name) || matchers.some((matches) => matches(name))
}

/** Compiles a pattern in which `*` stands for any characters. The time to match is at most the product of the lengths. */
export function compilePattern(pattern: string): (name: string) => boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return (name) => name === first
  return (name) => {
    if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false
    const end = name.length - last.length
    let from = first.length
    for (const part of rest) {
      const at = name.indexOf(part, from)
      if (at < 0 || at + part.length > end) return false
      from = at + part.length
    }
    return true
  }
}
