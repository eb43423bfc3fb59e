import { reachableFrom, refName, type Definitions, type Schema } from '../schema.ts'
import type { Kind } from '../v1alpha1/kinds.ts'
import type { Files } from './output.ts'

const NOTE = '<!-- Written by `make generate`. Do not edit. -->'

const escape = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
/** Escapes `<name>` outside of code spans, where it would be HTML. */
const prose = (text: string): string => text.replaceAll(/`[^`]*`|<(?=\w)/g, (part) => (part === '<' ? '&lt;' : part))
function code(value: unknown): string {
  const text = typeof value === 'string' && value !== '' ? value : JSON.stringify(value)
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``
}
/** A type of Kubernetes, which has no section of its own. */
const METADATA = 'ObjectMeta'
const link = (name: string): string => (name === METADATA ? name : `[${name}](#${name.toLowerCase()})`)

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return link(refName(schema.$ref))
  if (schema['x-kubernetes-int-or-string']) return 'integer or string'
  if (schema.enum) return schema.enum.length > 12 ? 'string' : schema.enum.map(code).join(', ')
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`
  if (typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties)}`
  if (schema.type === 'object' && schema['x-kubernetes-preserve-unknown-fields']) return 'any object'
  return schema.type ?? 'any JSON'
}

function range(unit: string, low: number | undefined, high: number | undefined): string[] {
  if (low !== undefined && high !== undefined) return [`${low} to ${high}${unit}`]
  if (low !== undefined) return [`at least ${low}${unit}`]
  return high === undefined ? [] : [`at most ${high}${unit}`]
}

/** The bounds of a schema as text: `1 to 16 items, unique by name`. */
function boundsOf(schema: Schema): string {
  const keys = schema['x-kubernetes-list-map-keys']
  const bounds = [
    ...range('', schema.minimum, schema.maximum),
    ...range(' characters', schema.minLength, schema.maxLength),
    ...range(' items', schema.minItems, schema.maxItems),
    ...range(' entries', schema.minProperties, schema.maxProperties),
    ...(schema.items && !schema.items.$ref ? range(' characters each', schema.items.minLength, schema.items.maxLength) : []),
    ...(schema['x-kubernetes-list-type'] === 'set' ? ['no duplicates'] : []),
    ...(keys ? [`unique by ${keys.join(', ')}`] : []),
  ]
  const words = bounds.length === 0 ? '' : ` *${bounds.join(', ')}*`
  return schema.pattern === undefined ? words : `${words} Pattern ${code(schema.pattern)}.`
}

function row(path: string, schema: Schema, isRequired: boolean): string {
  const fallback = schema.default === undefined ? '' : code(schema.default)
  const description = `${prose(schema.description ?? '')}${boundsOf(schema)}`
  return `| \`${path}\` | ${escape(typeOf(schema))} | ${isRequired ? 'yes' : ''} | ${escape(fallback)} | ${escape(description)} |`
}

/** Rows for the fields of an object. Fields of inline objects follow as `parent.child`. */
function rowsOf(schema: Schema, definitions: Definitions, prefix = ''): string[] {
  const others = schema.properties && typeof schema.additionalProperties === 'object' ? { '<name>': schema.additionalProperties } : {}
  return Object.entries({ ...schema.properties, ...others }).flatMap(([name, field]) => {
    const path = `${prefix}${name}`
    const described =
      field.description === undefined && field.$ref !== undefined ? { ...field, description: definitions[refName(field.$ref)]?.description ?? '' } : field
    const nested = field.type === 'array' ? { schema: field.items ?? {}, path: `${path}[].` } : { schema: field, path: `${path}.` }
    return [row(path, described, schema.required?.includes(name) ?? false), ...rowsOf(nested.schema, definitions, nested.path)]
  })
}

function sectionOf(name: string, schema: Schema, definitions: Definitions): string {
  const rows = rowsOf(schema, definitions)
  const rules = (schema['x-kubernetes-validations'] ?? []).map((rule) => `- ${prose(rule.message)}`)
  const table = ['| Field | Type | Required | Default | Description |', '|---|---|---|---|---|', ...rows].join('\n')
  return [
    `## ${name}`,
    `${prose(schema.description ?? '')}${rows.length === 0 ? boundsOf(schema) : ''}`,
    ...(rows.length > 0 ? [table] : schema.properties ? ['No fields.'] : [`Type: ${typeOf(schema)}.`]),
    ...(rules.length > 0 ? [`Rules:\n\n${rules.join('\n')}`] : []),
  ].join('\n\n')
}

/** A page with the roots, followed by every definition that is reachable from them. */
function toPage(definitions: Definitions, title: string, intro: string, roots: readonly string[]): string {
  const reachable = reachableFrom(definitions, roots).filter((name) => !roots.includes(name) && name !== METADATA)
  const sections = [...roots, ...reachable].map((name) => sectionOf(name, definitions[name] ?? {}, definitions))
  return `${NOTE}\n\n# ${title}\n\n${intro}\n\n${sections.join('\n\n')}\n`
}

/** The reference pages: one for each kind, one for the config contract, and an index. */
export function toReferencePages(api: Definitions, kinds: readonly Kind[], config: Definitions, messages: readonly string[]): Files {
  const pages = kinds.map((kind) => {
    const names = `Plural \`${kind.plural}\`, short name ${kind.shortNames.map(code).join(', ')}, category ${kind.categories.map(code).join(', ')}.`
    return [`docs/reference/${kind.singular}.md`, toPage(api, kind.kind, names, [kind.kind, `${kind.kind}Spec`, `${kind.kind}Status`])] as const
  })
  const wire = reachableFrom(config, messages)
  const fileOnly = reachableFrom(config, ['ConfigFile']).filter((name) => name !== 'ConfigFile' && !wire.includes(name))
  const configIntro = [
    'Two formats share most types, and their sections follow in this order:',
    [
      `- **The config file** of \`dataplane -f\`, which people write: [ConfigFile](#configfile), and the types of the file only: ${fileOnly.map(link).join(', ')}.`,
      `- **The xDS stream** from the operator, which programs write: the messages ${messages.map(link).join(', ')}, and the types that both use.`,
    ].join('\n'),
    'Unknown fields are errors. Where a resource of the API refers to another object, a message contains the object that the operator found: see [BackendRef](#backendref), [ResolvedSecret](#resolvedsecret) and [ResolvedKeySet](#resolvedkeyset).',
  ].join('\n\n')
  const index = [
    NOTE,
    '# Reference',
    'Every field, with type, default, bounds and meaning. Generated from the schemas in `api/`.',
    [
      ...kinds.map((kind) => `- [${kind.kind}](${kind.singular}.md): ${prose(api[kind.kind]?.description ?? '')}`),
      '- [Config](config.md): the config file and the xDS stream.',
      '- [Errors](errors.md): responses that the data plane makes when a request fails.',
      '- [Management API](management-api/README.md): what the console reads, on the management port of a data plane.',
      '- [Messages](messages/README.md): codes of problems in statuses, logs, validation and proxyctl, with cause and fix.',
      '- [LLM providers](llm-providers.md): the presets with base URL, formats and peculiarities.',
      '- [Rules of LLM targets](llm-rules.md): what each LLM API and family of models demands of requests.',
    ].join('\n'),
  ].join('\n\n')
  return {
    ...Object.fromEntries(pages),
    'docs/reference/config.md': toPage(config, 'Config', configIntro, ['ConfigFile', ...fileOnly, ...messages]),
    'docs/reference/README.md': `${index}\n`,
  }
}
