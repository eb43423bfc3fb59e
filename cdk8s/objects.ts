import { ApiObject, type ApiObjectMetadata } from 'cdk8s'
import type { Construct } from 'constructs'
import * as models from '#gen/v1alpha1/models.ts'
import type { ProxyBackendSpec, ProxyParametersSpec, ProxyPolicySpec } from '#gen/v1alpha1/types.ts'

interface Props<Spec> {
  readonly metadata?: ApiObjectMetadata
  readonly spec: Spec
}

// The kinds of the API as constructs whose specs the compiler checks. The generated models set apiVersion and kind.

export class ProxyPolicy extends ApiObject {
  constructor(scope: Construct, id: string, { metadata = {}, spec }: Props<ProxyPolicySpec>) {
    super(scope, id, new models.ProxyPolicy({ metadata, spec }))
  }
}

export class ProxyBackend extends ApiObject {
  constructor(scope: Construct, id: string, { metadata = {}, spec }: Props<ProxyBackendSpec>) {
    super(scope, id, new models.ProxyBackend({ metadata, spec }))
  }
}

export class ProxyParameters extends ApiObject {
  constructor(scope: Construct, id: string, { metadata = {}, spec }: Props<ProxyParametersSpec>) {
    super(scope, id, new models.ProxyParameters({ metadata, spec }))
  }
}
