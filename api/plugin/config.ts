import { Ajv, type ErrorObject } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'

const MAX_ERRORS = 10
const MAX_LENGTH = 80

/** Dialects by `$schema`. The one of schemas that name none knows the keywords of draft-07, too. */
const dialects = new Map([
  ['http://json-schema.org/draft-07/schema', Ajv],
  ['https://json-schema.org/draft/2020-12/schema', Ajv2020],
])

/** Adds the defaults of `configSchema` to `config`, and checks it. Throws an Error that names each member that does not match. */
export function checkConfig(configSchema: object | undefined, config: unknown): void {
  if (configSchema === undefined) return
  const { $schema } = configSchema as { readonly $schema?: unknown }
  const Dialect = dialects.get(String($schema).replace(/#$/, '')) ?? Ajv2019
  const validate = new Dialect({ strict: false, useDefaults: true, allErrors: true, verbose: true }).compile(configSchema)
  if (validate(config)) return
  const problems = [...new Set((validate.errors ?? []).map(describe))]
  const more = problems.length - MAX_ERRORS
  throw new Error([...problems.slice(0, MAX_ERRORS), ...(more > 0 ? [`${more} more`] : [])].join('; '))
}

/** Field, value, and what is right. */
function describe({ instancePath, keyword, params, message = 'does not match', data, parentSchema = {}, propertyName }: ErrorObject): string {
  const field = instancePath
    .split('/')
    .slice(1)
    .reduce((path, name) => path + memberOf(name.replaceAll('~1', '/').replaceAll('~0', '~')), 'config')
  const known = Object.keys((parentSchema['properties'] as object | undefined) ?? {})
  switch (keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = String(params['additionalProperty'] ?? params['unevaluatedProperty'])
      const fix = known.length === 0 ? 'remove it' : `use ${known.join(', ')}`
      return `${field}${memberOf(name)} is not in configSchema, is ${show((data as Record<string, unknown>)[name])}; ${fix}`
    }
    case 'required':
      return `${field} ${message}; add ${field}${memberOf(String(params['missingProperty']))}`
    case 'enum':
      return `${field} must be one of ${(params['allowedValues'] as unknown[]).map(show).join(', ')}, is ${show(data)}`
    case 'const':
      return `${field} must be ${show(params['allowedValue'])}, is ${show(data)}`
    default:
      return propertyName === undefined ? `${field} ${message}, is ${show(data)}` : `${field}${memberOf(propertyName)}: the name ${message}`
  }
}

function memberOf(name: string): string {
  if (/^\d{1,9}$/.test(name)) return `[${name}]`
  return /^[A-Za-z_$][\w$]{0,62}$/.test(name) ? `.${name}` : `[${show(name)}]`
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}...` : text
}
