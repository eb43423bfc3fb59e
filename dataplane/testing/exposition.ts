/**
 * A strict parser of metric expositions, for tests: Prometheus text format 0.0.4 and OpenMetrics 1.0. It throws on everything
 * that a scraper may reject: families that are split or untyped, duplicate samples, bad escapes, histograms that do not add up, a missing `# EOF`.
 */

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Exposition {
  readonly samples: readonly Sample[]
  all(name: string): readonly Sample[]
  /** Value of the only sample whose labels include the given ones; undefined if there is none, throws if there are several. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
}

const suffixes: Readonly<Record<string, Readonly<Record<'text' | 'openmetrics', readonly string[]>>>> = {
  counter: { text: [''], openmetrics: ['_total'] },
  gauge: { text: [''], openmetrics: [''] },
  info: { text: [], openmetrics: ['_info'] },
  histogram: { text: ['_bucket', '_sum', '_count'], openmetrics: ['_bucket', '_sum', '_count'] },
}

export function parseExposition(text: string, format: 'text' | 'openmetrics'): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line has no line feed')
  const lines = text.slice(0, -1).split('\n')
  if (format === 'openmetrics' && lines.pop() !== '# EOF') throw new Error('OpenMetrics must end with # EOF')
  const seen = new Set<string>()
  const samples: Sample[] = []
  const keys = new Set<string>()
  let family = { name: '', type: '' }
  for (const line of lines) {
    const meta = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line)
    if (meta !== null) {
      const [, keyword, name = '', rest = ''] = meta
      if (keyword === 'HELP') {
        if (seen.has(name)) throw new Error(`family ${name} is split`)
        if (/\\(?![\\n"])/.test(rest)) throw new Error(`bad escape in help of ${name}`)
        seen.add(name)
        family = { name, type: '' }
      } else {
        if (name !== family.name || suffixes[rest] === undefined) throw new Error(`misplaced or unknown type: ${line}`)
        family = { name, type: rest }
      }
      continue
    }
    const sample = parseSample(line)
    const allowed = suffixes[family.type]?.[format].map((suffix) => family.name + suffix) ?? []
    if (!allowed.includes(sample.name)) throw new Error(`sample ${sample.name} does not belong to ${family.type} ${family.name}`)
    if (family.type === 'counter' && !(sample.value >= 0 && sample.name.endsWith('_total'))) throw new Error(`bad counter: ${line}`)
    const key = JSON.stringify([sample.name, Object.entries(sample.labels).toSorted(([a], [b]) => (a < b ? -1 : 1))])
    if (keys.has(key)) throw new Error(`duplicate sample: ${line}`)
    keys.add(key)
    samples.push(sample)
  }
  checkHistograms(samples, format)
  const all = (name: string): readonly Sample[] => samples.filter((sample) => sample.name === name)
  return {
    samples,
    all,
    value(name, labels = {}) {
      const found = all(name).filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
      if (found.length > 1) throw new Error(`${found.length} samples of ${name} match ${JSON.stringify(labels)}`)
      return found[0]?.value
    },
  }
}

function parseSample(line: string): Sample {
  const head = /^([a-zA-Z_:][a-zA-Z0-9_:]*)/.exec(line)?.[1]
  if (head === undefined) throw new Error(`not a sample: ${JSON.stringify(line)}`)
  let rest = line.slice(head.length)
  const labels: Record<string, string> = {}
  if (rest.startsWith('{')) {
    rest = rest.slice(1)
    while (!rest.startsWith('}')) {
      const pair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,(?=[a-zA-Z_])|(?=\}))/.exec(rest)
      if (pair === null) throw new Error(`bad labels: ${line}`)
      const [whole, name = '', value = ''] = pair
      if (name in labels) throw new Error(`label ${name} twice: ${line}`)
      labels[name] = value.replace(/\\([\\"n])/g, (_all, char: string) => (char === 'n' ? '\n' : char))
      rest = rest.slice(whole.length)
    }
    rest = rest.slice(1)
  }
  const number = /^ ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/.exec(rest)?.[1]
  if (number === undefined) throw new Error(`bad value: ${line}`)
  return { name: head, labels, value: Number(number.replace('Inf', 'Infinity')) }
}

function checkHistograms(samples: readonly Sample[], format: 'text' | 'openmetrics'): void {
  const groups = new Map<string, { bounds: number[]; counts: number[] }>()
  for (const { name, labels, value } of samples) {
    const { le, ...others } = labels
    if (le === undefined) continue
    if (format === 'openmetrics' && !/^\d+\.\d+$|^\d(\.\d+)?e[+-]?\d+$|^\+Inf$/.test(le)) throw new Error(`bound is not a canonical float: ${le}`)
    const key = name.replace(/_bucket$/, '_count') + JSON.stringify(others)
    const group = groups.get(key) ?? { bounds: [], counts: [] }
    groups.set(key, group)
    const bound = Number(le.replace('Inf', 'Infinity'))
    if (bound <= (group.bounds.at(-1) ?? -Infinity) || value < (group.counts.at(-1) ?? 0)) throw new Error(`buckets of ${key} do not rise`)
    group.bounds.push(bound)
    group.counts.push(value)
  }
  for (const { name, labels, value } of samples) {
    const group = groups.get(name + JSON.stringify(labels))
    if (group === undefined) continue
    if (group.bounds.at(-1) !== Infinity || group.counts.at(-1) !== value) throw new Error(`bucket +Inf of ${name} is not its count`)
    groups.delete(name + JSON.stringify(labels))
  }
  if (groups.size > 0) throw new Error(`histograms without count: ${[...groups.keys()].join(', ')}`)
}
