import { families } from '../../dataplane/backend/llm/rules/families.ts'
import { table } from '../../dataplane/backend/llm/rules/table.ts'
import type { TargetRules } from '../../dataplane/backend/llm/rules/types.ts'
import type { Files } from './output.ts'

/** What each rule is about, in the order of the page. */
const titles: Readonly<Record<keyof TargetRules, string>> = {
  ids: 'Ids of tool calls',
  names: 'Names of tools',
  schema: 'Schemas of tools',
  roles: 'Roles and order of messages',
  blanks: 'Blank text',
  user: 'Id of the user',
  media: 'Images and documents',
  tokenLimit: 'Field of the token limit',
  reasoning: 'Reasoning',
  sampling: 'Sampling parameters',
  stops: 'Stop sequences',
  cache: 'Prompt cache breakpoints',
  betas: 'Values of anthropic-beta',
  query: 'Keys of the query',
  asksStreamUsage: 'Usage of streams on request only',
  thoughts: 'Thought signatures of Gemini',
  drops: 'Fields that are left out',
  renames: 'Fields under other names',
}

const targets = Object.keys(table) as (keyof typeof table)[]

/** The page of the rules that the data plane applies to LLM requests, by API and by model. */
export function toLlmRulesPage(): Files {
  const rules = Object.keys(titles) as (keyof TargetRules)[]
  const text = [
    '<!-- Written by `make generate`. Do not edit. -->',
    '',
    '# Rules of LLM targets',
    '',
    'What each API enforces beyond its schema, as the gateway applies it to requests. [LLM traffic](../guide/llm.md#conversion-of-formats) explains the effect, the [specification](../spec/llm.md) the reasons (llm.md §7.15).',
    '`compatible` are servers of other vendors with the Chat Completions API. [types.ts](../../dataplane/backend/llm/rules/types.ts) explains each member.',
    '',
    ...rules.flatMap((rule) => [`## ${titles[rule]}`, '', ...tableOf(rule), '']),
    '## By model',
    '',
    'These replace cells of the tables above. Families are read from the id of the model; a version above all known ones has the newest rules.',
    '',
    '| family | versions | targets | rules | source |',
    '|---|---|---|---|---|',
    ...families.map(({ vendor, lines, from, until, targets: own, change, source }) => {
      const [first = 'openai'] = own
      const family = lines === undefined ? vendor : `${vendor} ${lines.source.replaceAll('|', ', ')}`
      return `| ${family} | ${versions(from, until)} | ${own.join(', ')} | ${escape(Object.entries(change(table[first])).map(changeOf(table[first])).join('; '))} | ${escape(source)} |`
    }),
    '',
  ]
  return { 'docs/reference/llm-rules.md': text.join('\n') }
}

const version = (value: number): string => `${Math.floor(value / 100)}${value % 100 === 0 ? '' : `.${value % 100}`}`
const versions = (from: number, until: number): string =>
  from === 0 && until === Infinity
    ? 'all'
    : [from === 0 ? '' : `from ${version(from)}`, until === Infinity ? '' : `below ${version(until)}`].filter(Boolean).join(', ')

/** A change as the members that differ from the rules of the API. */
function changeOf(rules: TargetRules): (change: [string, unknown]) => string {
  return ([rule, changed]) => {
    const given: unknown = rules[rule as keyof TargetRules]
    if (typeof changed !== 'object' || changed === null) return `${rule} ${print(changed)}`
    const differs = Object.entries(changed).filter(([key, value]) => print(value) !== print((given as Record<string, unknown>)[key]))
    return differs.map(([key, value]) => `${rule}.${key} ${print(value)}`).join('; ')
  }
}

/** A table of one rule: members by target. */
function tableOf(rule: keyof TargetRules): string[] {
  const cells = targets.map((target) => table[target][rule])
  const [first] = cells
  const keys = typeof first === 'object' ? Object.keys(first) : [rule]
  return [
    `| | ${targets.join(' | ')} |`,
    `|---|${targets.map(() => '---|').join('')}`,
    ...keys.map(
      (key) =>
        `| ${key} | ${cells.map((cell) => escape(print(typeof cell === 'object' ? (cell as unknown as Record<string, unknown>)[key] : cell))).join(' | ')} |`,
    ),
  ]
}

const escape = (text: string): string => text.replaceAll('|', '\\|')

function print(value: unknown): string {
  if (value === undefined) return '–'
  if (value === Infinity) return 'no limit'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (value instanceof RegExp) return `\`${value.source}\``
  if (value instanceof Set) return [...(value as ReadonlySet<unknown>)].map(print).join(', ') || 'none'
  if (Array.isArray(value)) return value.length === 0 ? 'none' : (value as unknown[]).map(print).join(', ')
  if (typeof value === 'object' && value !== null)
    return (
      Object.entries(value)
        .map(([key, member]) => `${key} → ${print(member)}`)
        .join(', ') || 'none'
    )
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}
