/** Written by `make generate`. Do not edit. */
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
    compiled ??= ajv.compile<T>({ $ref: `proxy#/$defs/${kind}` })
    // Copy without the prototype: Ajv would report the model's methods as unknown fields.
    const isValid = compiled(data instanceof Model ? data.toJSON() : data)
    Object.assign(validate, { errors: compiled.errors })
    return isValid
  }
  return validate as ValidateFunction<T>
}

/** Policies for client connections (frontend), requests (traffic) and connections to backends (backend), attached to Gateways, routes, Services or backends. */
export class ProxyPolicy extends Model<Types.ProxyPolicy> implements Types.ProxyPolicy {
  declare apiVersion: 'proxy.dev/v1alpha1'
  declare kind: 'ProxyPolicy'
  declare metadata: Types.ProxyPolicy['metadata']
  declare spec: Types.ProxyPolicy['spec']
  declare status?: Types.ProxyPolicyStatus
  static readonly apiVersion = 'proxy.dev/v1alpha1'
  static readonly kind = 'ProxyPolicy'
  /** Whether an object has this apiVersion and kind. Does not validate its content. */
  static readonly is = createTypeMetaGuard<Types.ProxyPolicy>({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyPolicy' })

  constructor(data?: ModelData<Types.ProxyPolicy>) {
    super()
    this.setDefinedProps({ apiVersion: ProxyPolicy.apiVersion, kind: ProxyPolicy.kind, ...data } as ModelData<Types.ProxyPolicy>)
  }
}
setValidateFunc(ProxyPolicy, validatorOf<Types.ProxyPolicy>('ProxyPolicy'))

/** A destination other than a Service, for backendRefs: a fixed host, the host of the request, LLM providers, MCP servers, a cloud service. */
export class ProxyBackend extends Model<Types.ProxyBackend> implements Types.ProxyBackend {
  declare apiVersion: 'proxy.dev/v1alpha1'
  declare kind: 'ProxyBackend'
  declare metadata: Types.ProxyBackend['metadata']
  declare spec: Types.ProxyBackend['spec']
  declare status?: Types.ProxyBackendStatus
  static readonly apiVersion = 'proxy.dev/v1alpha1'
  static readonly kind = 'ProxyBackend'
  /** Whether an object has this apiVersion and kind. Does not validate its content. */
  static readonly is = createTypeMetaGuard<Types.ProxyBackend>({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend' })

  constructor(data?: ModelData<Types.ProxyBackend>) {
    super()
    this.setDefinedProps({ apiVersion: ProxyBackend.apiVersion, kind: ProxyBackend.kind, ...data } as ModelData<Types.ProxyBackend>)
  }
}
setValidateFunc(ProxyBackend, validatorOf<Types.ProxyBackend>('ProxyBackend'))

/** Deployment settings of data planes, for parametersRef of a GatewayClass or infrastructure.parametersRef of a Gateway. */
export class ProxyParameters extends Model<Types.ProxyParameters> implements Types.ProxyParameters {
  declare apiVersion: 'proxy.dev/v1alpha1'
  declare kind: 'ProxyParameters'
  declare metadata: Types.ProxyParameters['metadata']
  declare spec: Types.ProxyParameters['spec']
  declare status?: Types.ProxyParametersStatus
  static readonly apiVersion = 'proxy.dev/v1alpha1'
  static readonly kind = 'ProxyParameters'
  /** Whether an object has this apiVersion and kind. Does not validate its content. */
  static readonly is = createTypeMetaGuard<Types.ProxyParameters>({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters' })

  constructor(data?: ModelData<Types.ProxyParameters>) {
    super()
    this.setDefinedProps({ apiVersion: ProxyParameters.apiVersion, kind: ProxyParameters.kind, ...data } as ModelData<Types.ProxyParameters>)
  }
}
setValidateFunc(ProxyParameters, validatorOf<Types.ProxyParameters>('ProxyParameters'))
