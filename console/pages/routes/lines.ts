const MAX_LINES = 60

/** A value as text that reads like YAML: short lists and objects of scalars take one line. */
export function toLines(value: unknown): string {
  const lines = format(value, '')
  return lines.length <= MAX_LINES ? lines.join('\n') : [...lines.slice(0, MAX_LINES), `… ${lines.length - MAX_LINES} more lines`].join('\n')
}

function format(value: unknown, indent: string): string[] {
  if (Array.isArray(value)) {
    if (value.length === 0) return [`${indent}[]`]
    return value.flatMap((item) => {
      const [first = '', ...rest] = format(item, `${indent}  `)
      return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest]
    })
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    if (entries.length === 0) return [`${indent}{}`]
    return entries.flatMap(([key, item]) => (isScalar(item) ? [`${indent}${key}: ${scalar(item)}`] : [`${indent}${key}:`, ...format(item, `${indent}  `)]))
  }
  return [indent + scalar(value)]
}

const isScalar = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0)

/** Strings stay readable: quoted only if they could be read as something else. */
function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null'
  return value === '' || /^[\s'"[{>|*&!%#@`-]|\s$|: | #|\n|^(?:true|false|null|[\d.]+)$/.test(value) ? JSON.stringify(value) : value
}
