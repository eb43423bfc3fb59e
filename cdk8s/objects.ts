import { ApiObject, type ApiObjectMetadata } from 'cdk8s'
import type { Construct } from 'constructs'
import { GROUP, VERSION } from '#api/names.ts'
import type { ProxyBackendSpec, ProxyParametersSpec, ProxyPolicySpec } from '#gen/v1alpha1/types.ts'

const apiVersion = `${GROUP}/${VERSION}`

interface Props<Spec> {
  readonly metadata?: ApiObjectMetadata
  readonly spec: Spec
}

// The kinds of the API as constructs whose specs the compiler checks.

export class ProxyPolicy extends ApiObject {
  constructor(scope: Construct, id: string, props: Props<ProxyPolicySpec>) {
    super(scope, id, { apiVersion, kind: 'ProxyPolicy', ...props })
  }
}

export class ProxyBackend extends ApiObject {
  constructor(scope: Construct, id: string, props: Props<ProxyBackendSpec>) {
    super(scope, id, { apiVersion, kind: 'ProxyBackend', ...props })
  }
}

export class ProxyParameters extends ApiObject {
  constructor(scope: Construct, id: string, props: Props<ProxyParametersSpec>) {
    super(scope, id, { apiVersion, kind: 'ProxyParameters', ...props })
  }
}
