import { GROUP, VERSION } from '../names.ts'
import type { Definitions } from '../schema.ts'
import type { Kind } from '../v1alpha1/kinds.ts'

const modelOf = (definitions: Definitions, { kind }: Kind): string => `/** ${definitions[kind]?.description ?? ''} */
export class ${kind} extends Model<Types.${kind}> implements Types.${kind} {
  declare apiVersion: '${GROUP}/${VERSION}'
  declare kind: '${kind}'
  declare metadata: Types.${kind}['metadata']
  declare spec: Types.${kind}['spec']
  declare status?: Types.${kind}Status
  static readonly apiVersion = '${GROUP}/${VERSION}'
  static readonly kind = '${kind}'
  /** Whether an object has this apiVersion and kind. Does not validate its content. */
  static readonly is = createTypeMetaGuard<Types.${kind}>({ apiVersion: '${GROUP}/${VERSION}', kind: '${kind}' })

  constructor(data?: ModelData<Types.${kind}>) {
    super()
    this.setDefinedProps({ apiVersion: ${kind}.apiVersion, kind: ${kind}.kind, ...data } as ModelData<Types.${kind}>)
  }
}
setValidateFunc(${kind}, validatorOf<Types.${kind}>('${kind}'))
`

/** Source of the classes of the kinds: `new ProxyPolicy({ metadata, spec })`, with `validate()` and `toJSON()`. */
export function toModels(definitions: Definitions, kinds: readonly Kind[]): string {
  return `/** Written by \`make generate\`. Do not edit. */
import { createTypeMetaGuard, Model, setValidateFunc, type ModelData } from '@kubernetes-models/base'
import { Ajv, type ValidateFunction } from 'ajv'
import schema from './schema.json' with { type: 'json' }
import type * as Types from './types.ts'

let ajv: Ajv | undefined

/** Compiles the schema of a kind on first use, because most programs never validate. */
function validatorOf<T>(kind: string): ValidateFunction<T> {
  let compiled: ValidateFunction<T> | undefined
  const validate = (data: unknown): data is T => {
    ajv ??= new Ajv({ allErrors: true, strict: false }).addSchema(schema, 'proxy')
    compiled ??= ajv.compile<T>({ $ref: \`proxy#/$defs/\${kind}\` })
    // Copy without the prototype: Ajv would report the model's methods as unknown fields.
    const isValid = compiled(data instanceof Model ? data.toJSON() : data)
    Object.assign(validate, { errors: compiled.errors })
    return isValid
  }
  return validate as ValidateFunction<T>
}

${kinds.map((kind) => modelOf(definitions, kind)).join('\n')}`
}
