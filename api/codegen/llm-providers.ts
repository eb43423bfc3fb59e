import { PRESET_NAMES, presets, systemOf, type Preset, type ServerRules } from '../llm-presets.ts'
import type { Files } from './output.ts'

/** The page of the providers that are presets. */
export function toLlmProvidersPage(): Files {
  const rows = PRESET_NAMES.map((name) => {
    const preset: Preset = presets[name]
    const { title, formats, rules = {}, source } = preset
    return `| \`${name}\` | ${title} | ${urlOf(preset)} | ${formats.join(', ')} | ${rulesOf(rules)} | \`${systemOf(name)}\` | ${source} |`
  })
  const text = [
    '<!-- Written by `make generate`. Do not edit. -->',
    '',
    '# LLM providers by preset',
    '',
    'Values of `preset` of a provider. [Providers](../guide/llm-providers.md) shows their use. Formats that a provider does not have are converted to those that it has. The column "prices" has the name of the provider in price catalogs, logs and metrics.',
    '',
    '| preset | provider | base URL | formats | peculiarities | prices | source, checked 2026-11-28 |',
    '|---|---|---|---|---|---|---|',
    ...rows,
    '',
  ]
  return { 'docs/reference/llm-providers.md': text.join('\n') }
}

function urlOf({ host, port, base, hasTls }: Preset): string {
  if (host !== undefined) return `\`https://${host}${base}\``
  return `your host, ${hasTls === true ? 'HTTPS, ' : ''}usually port ${port}, \`${base}\``
}

const rulesOf = (rules: ServerRules): string =>
  Object.entries(rules)
    .map(([rule, value]: [string, unknown]) => `${rule}: ${Array.isArray(value) ? value.join(' ') : typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('; ')
