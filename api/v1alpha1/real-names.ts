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

/** The fields of a definition, each under its real name, where it is described, and then under its neutral one. */
export function withRealNames(definition: string, fields: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const entries = Object.entries(fields).flatMap(([field, schema]): [string, Schema][] => {
    const real = valueAt(fieldNames[definition], field)
    if (real === undefined) return [[field, schema]]
    return [
      [real, schema],
      [field, { ...schema, description: `${NEUTRAL_NAME}${real}.` }],
    ]
  })
  return Object.fromEntries(entries)
}

const NEUTRAL_NAME = 'Neutral name of '

/** Whether a field is another one under its neutral name: its own fields are described there. */
export const isNeutralName = ({ description }: Schema): boolean => description?.startsWith(NEUTRAL_NAME) === true

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

/** Neutral names of fields and values with their real ones. */
const realNames: ReadonlyMap<string, string> = new Map(
  [...Object.values(fieldNames), ...Object.values(valueNames).flatMap((fields) => Object.values(fields))].flatMap((names) => Object.entries(names)),
)
/** Neutral names in a text, except parts of words and of quotations. */
const neutralWord = new RegExp(`(?<![\\w"'-])(?:${[...realNames.keys()].join('|')})(?![\\w"'-])`, 'g')

/** A message with the real names of fields. Those that the object that the message is about has under their neutral names stay. */
export const renameInText = (text: string, written: () => object | undefined): string =>
  text.replace(neutralWord, (name) => (JSON.stringify(written() ?? {}).includes(`"${name}"`) ? name : (realNames.get(name) ?? name)))

/** The real name of a field of a definition, or the name itself. */
export const realNameOf = (definition: string, field: string): string => realField(definition, field)

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
