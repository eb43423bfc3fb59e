import { exactlyOneOf, mapChildren, refName, type Definitions, type Schema, type ValidationRule } from '../schema.ts'

const providers = {
  providerA: 'openai',
  providerB: 'azureOpenAI',
  providerC: 'anthropic',
  providerD: 'gemini',
  providerE: 'vertexAI',
  providerF: 'bedrock',
} as const
const guards = { moderationApi: 'openAIModeration', cloudGuardrails: 'bedrockGuardrails', modelArmor: 'googleModelArmor' } as const

/**
 * Real names of vendors beside the neutral names of fields, by definition. Users may write either; both at once is rejected. Programs see the neutral ones:
 * `toNeutralNames` replaces the others before anything else reads an object.
 */
const fieldNames: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  LLMProvider: providers,
  NamedLLMProvider: providers,
  ShortLLMModel: providers,
  ShortModelTarget: providers,
  ShortModelFallback: providers,
  BackendAuth: { cloudA: 'aws', cloudB: 'azure', cloudC: 'gcp' },
  CloudBackend: { agentRuntime: 'agentCore' },
  PromptguardRequest: guards,
  PromptguardResponse: guards,
}

/** Real names beside the neutral values of fields, by definition and field. */
const valueNames: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  MCPAuthentication: { provider: { IdpKind1: 'auth0', IdpKind2: 'keycloak' } },
}

/** The fields of a definition, and those fields under their real names. */
export function withRealNames(definition: string, fields: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const names = fieldNames[definition] ?? {}
  const added = Object.entries(names).flatMap(([neutral, real]) => {
    const schema = fields[neutral]
    return schema === undefined
      ? []
      : [[real, { ...schema, description: `${VENDORS[real]}. ${OTHER_NAME}${neutral}, where the fields are described.` }] as const]
  })
  return { ...fields, ...Object.fromEntries(added) }
}

/** What fields under real names are, for `kubectl explain`. */
const VENDORS: Readonly<Record<string, string>> = {
  openai: 'OpenAI',
  azureOpenAI: 'Azure OpenAI',
  anthropic: 'Anthropic',
  gemini: 'Google Gemini',
  vertexAI: 'Google Vertex AI',
  bedrock: 'Amazon Bedrock',
  aws: 'AWS',
  azure: 'Microsoft Azure',
  gcp: 'Google Cloud',
  agentCore: 'Amazon Bedrock AgentCore',
  openAIModeration: 'OpenAI moderation',
  bedrockGuardrails: 'Amazon Bedrock Guardrails',
  googleModelArmor: 'Google Model Armor',
}
const OTHER_NAME = 'Neutral name: '

/** Whether a field is another one under its real name: its own fields are described there. */
export const isRealName = ({ description }: Schema): boolean => description?.includes(OTHER_NAME) === true

/** A rule that requires exactly one of `fields`, under either of its names. The message has the real ones. */
export function exactlyOneOfNames(definition: string, ...fields: string[]): ValidationRule {
  const { rule } = exactlyOneOf(...fields.flatMap((field) => [field, fieldNames[definition]?.[field] ?? []].flat()))
  return { rule, message: exactlyOneOf(...fields.map((field) => realField(definition, field))).message }
}

/** Values of a field with the real name after each neutral one. */
export function bothValues(definition: string, field: string, ...values: string[]): string[] {
  return values.flatMap((value) => [value, valueNames[definition]?.[field]?.[value] ?? []].flat())
}

/**
 * Replaces real names by neutral ones in a valid value of a definition. Returns the value itself if it has none. `definitions`: those of the kinds, or of
 * the config.
 */
export function toNeutralNames<T>(value: T, definition: string, definitions: Definitions): T {
  const renamer = new Renamer(definitions, { field: neutralField, value: neutralValue })
  return renamer.visit(value, { $ref: `#/$defs/${definition}` }) as T
}

/** Replaces neutral names by real ones, for output that people read. Otherwise like `toNeutralNames`. */
export function toRealNames<T>(value: T, definition: string, definitions: Definitions): T {
  const renamer = new Renamer(definitions, { field: realField, value: realValue })
  return renamer.visit(value, { $ref: `#/$defs/${definition}` }) as T
}

/** Replaces the names of fields and the values of fields of a definition. */
interface Names {
  field(definition: string, field: string): string
  value(definition: string, field: string, value: string): string
}

const neutralField: Names['field'] = (definition, field) => keyOf(fieldNames[definition], field) ?? field
const realField: Names['field'] = (definition, field) => valueAt(fieldNames[definition], field) ?? field
const neutralValue: Names['value'] = (definition, field, value) => keyOf(valueNames[definition]?.[field], value) ?? value
const realValue: Names['value'] = (definition, field, value) => valueAt(valueNames[definition]?.[field], value) ?? value

const keyOf = (names: Readonly<Record<string, string>> = {}, real: string): string | undefined => Object.keys(names).find((neutral) => names[neutral] === real)
const valueAt = (names: Readonly<Record<string, string>> = {}, neutral: string): string | undefined =>
  Object.hasOwn(names, neutral) ? names[neutral] : undefined

/** Definitions from which one with real names can be reached: only there is anything to replace. */
const reaching = new WeakMap<Definitions, ReadonlySet<string>>()

class Renamer {
  readonly #definitions: Definitions
  readonly #reaching: ReadonlySet<string>
  readonly #names: Names

  constructor(definitions: Definitions, names: Names) {
    this.#definitions = definitions
    this.#names = names
    const known = reaching.get(definitions) ?? findReaching(definitions)
    reaching.set(definitions, known)
    this.#reaching = known
  }

  visit(value: unknown, schema: Schema | undefined): unknown {
    if (schema === undefined || typeof value !== 'object' || value === null) return value
    if (schema.$ref !== undefined) {
      const name = refName(schema.$ref)
      return this.#reaching.has(name) ? this.#visitObject(value, this.#definitions[name] ?? {}, name) : value
    }
    return this.#visitObject(value, schema, '')
  }

  #visitObject(value: object, schema: Schema, definition: string): unknown {
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.visit(item, schema.items))
      return items.some((item, index) => item !== value[index]) ? items : value
    }
    let isChanged = false
    const entries = Object.entries(value).map(([name, member]: [string, unknown]): [string, unknown] => {
      const renamed = this.#names.field(definition, name)
      const others = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
      const visited = typeof member === 'string' ? this.#names.value(definition, name, member) : this.visit(member, schema.properties?.[name] ?? others)
      if (renamed !== name || visited !== member) isChanged = true
      return [renamed, visited]
    })
    return isChanged ? Object.fromEntries(entries) : value
  }
}

function findReaching(definitions: Definitions): ReadonlySet<string> {
  const found = new Set([...Object.keys(fieldNames), ...Object.keys(valueNames)])
  const reaches = (schema: Schema): boolean => {
    let isReaching = schema.$ref !== undefined && found.has(refName(schema.$ref))
    mapChildren(schema, (child) => {
      isReaching ||= reaches(child)
      return child
    })
    return isReaching
  }
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const [name, schema] of Object.entries(definitions)) if (reaches(schema)) found.add(name)
  }
  return found
}
