/** A tool, prompt or resource, as a server described it; members of wrong types are left out. */
export interface Item {
  readonly name?: string
  readonly uri?: string
  readonly description?: string
  readonly inputSchema?: Schema
  readonly arguments?: readonly { readonly name: string; readonly description?: string; readonly required: boolean }[]
}

/** The parts of a JSON schema that forms use. */
export interface Schema {
  readonly type?: unknown
  readonly description?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: unknown
  readonly enum?: unknown
}

/** The items of a list. Servers are not trusted: an entry that is not an object is left out. */
export function readItems(list: unknown): Item[] {
  if (!Array.isArray(list)) return []
  return list.filter(isObject).map(({ name, uri, description, inputSchema, arguments: args }) => ({
    ...readTexts({ name, uri, description }),
    ...(isObject(inputSchema) && { inputSchema: readSchema(inputSchema) }),
    ...(Array.isArray(args) && { arguments: args.filter(isObject).map(readArgument) }),
  }))
}

function readArgument({ name, description, required }: Record<string, unknown>): { name: string; description?: string; required: boolean } {
  return { name: typeof name === 'string' ? name : '', ...readTexts({ description }), required: required === true }
}

function readSchema({ properties, required }: Record<string, unknown>): Schema {
  if (!isObject(properties)) return {}
  return { properties: Object.fromEntries(Object.entries(properties).filter((entry): entry is [string, Schema] => isObject(entry[1]))), required }
}

function readTexts<K extends string>(values: Record<K, unknown>): Partial<Record<K, string>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === 'string')) as Partial<Record<K, string>>
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
