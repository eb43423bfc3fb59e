import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Writes the JSON Schema of Converse requests from the description of the API in botocore, which is not an npm package: names, types, enums, patterns and
 * lengths.
 *
 * pip download --no-deps botocore==1.44.8 && unzip botocore-*.whl 'botocore/data/bedrock-runtime/*'
 * gunzip botocore/data/bedrock-runtime/2023-09-30/service-2.json.gz
 * node dataplane/backend/llm/testing/bedrock/generate.ts botocore/data/bedrock-runtime/2023-09-30/service-2.json 'botocore 1.44.8'
 */

interface Shape {
  readonly type: string
  readonly required?: readonly string[]
  readonly members?: Readonly<Record<string, { readonly shape: string; readonly location?: string }>>
  readonly member?: { readonly shape: string }
  readonly value?: { readonly shape: string }
  readonly enum?: readonly string[]
  readonly min?: number
  readonly max?: number
  readonly pattern?: string
  readonly union?: boolean
  readonly document?: boolean
}

const [path = '', version = ''] = process.argv.slice(2)
const { shapes } = JSON.parse(readFileSync(path, 'utf8')) as { shapes: Record<string, Shape> }
const definitions: Record<string, unknown> = {}

function refer(name: string): { $ref: string } {
  if (!(name in definitions)) {
    definitions[name] = {}
    definitions[name] = write(shapes[name] ?? { type: 'structure' })
  }
  return { $ref: `#/$defs/${name}` }
}

function write({ type, required, members = {}, member, value, enum: values, min, max, pattern, union, document }: Shape): object {
  if (document === true) return {}
  switch (type) {
    case 'structure': {
      const body = Object.entries(members).filter(([, { location }]) => location === undefined)
      const properties = Object.fromEntries(body.map(([name, { shape }]) => [name, refer(shape)]))
      const demanded = required?.filter((name) => name in properties)
      return {
        type: 'object',
        properties,
        additionalProperties: false,
        ...(demanded?.length && { required: demanded }),
        ...(union && { minProperties: 1, maxProperties: 1 }),
      }
    }
    case 'list':
      return { type: 'array', items: refer(member?.shape ?? ''), ...(min && { minItems: min }), ...(max !== undefined && { maxItems: max }) }
    case 'map':
      return {
        type: 'object',
        additionalProperties: refer(value?.shape ?? ''),
        ...(min && { minProperties: min }),
        ...(max !== undefined && { maxProperties: max }),
      }
    case 'string':
      return values
        ? { enum: values }
        : {
            type: 'string',
            ...(min && { minLength: min }),
            ...(max !== undefined && { maxLength: max }),
            ...(pattern !== undefined && { pattern: `^(?:${pattern})$` }),
          }
    case 'blob':
      return { type: 'string', pattern: '^[A-Za-z0-9+/]*={0,2}$', ...(min && { minLength: min }) }
    case 'integer':
    case 'long':
      return { type: 'integer', ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) }
    case 'float':
    case 'double':
      return { type: 'number', ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) }
    default:
      return { type }
  }
}

const root = refer('ConverseRequest')
const schema = { $comment: `${version}, ${new Date().toISOString().slice(0, 10)}, generate.ts`, ...root, $defs: definitions }
writeFileSync(new URL('converse.schema.json', import.meta.url), `${JSON.stringify(schema, undefined, 1)}\n`)
