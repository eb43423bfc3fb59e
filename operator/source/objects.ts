import { GATEWAY_GROUP, GROUP, VERSION } from '#api/names.ts'
import type {
  BackendTLSPolicySpec,
  GatewayClassSpec,
  GatewaySpec,
  GRPCRouteSpec,
  HTTPRouteSpec,
  ListenerSetSpec,
  ReferenceGrantSpec,
  TCPRouteSpec,
  TLSRouteSpec,
} from './gateway-api.ts'
import type { EndpointSliceFields, KeyData, PodSpec, PodStatus, ServiceSpec } from './core.ts'
import { INFERENCE_GROUP, type InferencePoolSpec } from './inference.ts'
import type { ProxyBackendSpec, ProxyParametersSpec, ProxyPolicySpec } from '#gen/v1alpha1/types.ts'

/** The fields of metadata that the operator reads. A source fills in a missing namespace, generation or creationTimestamp. */
interface ObjectMeta {
  readonly name: string
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly uid?: string
  readonly generation: number
  /** RFC 3339. */
  readonly creationTimestamp: string
  /** Set while it is being deleted; kept of Pods only. */
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

interface Envelope<K extends string> {
  readonly apiVersion: string
  readonly kind: K
  readonly metadata: ObjectMeta
}

interface WithSpec<K extends string, Spec> extends Envelope<K> {
  readonly spec: Spec
  /** As stored: the writer's previous statuses, and those of other controllers. */
  readonly status?: object
}

export type GatewayClass = WithSpec<'GatewayClass', GatewayClassSpec>
export type Gateway = WithSpec<'Gateway', GatewaySpec>
export type ListenerSet = WithSpec<'ListenerSet', ListenerSetSpec>
export type HTTPRoute = WithSpec<'HTTPRoute', HTTPRouteSpec>
export type GRPCRoute = WithSpec<'GRPCRoute', GRPCRouteSpec>
export type TLSRoute = WithSpec<'TLSRoute', TLSRouteSpec>
export type TCPRoute = WithSpec<'TCPRoute', TCPRouteSpec>
export type ReferenceGrant = WithSpec<'ReferenceGrant', ReferenceGrantSpec>
export type BackendTLSPolicy = WithSpec<'BackendTLSPolicy', BackendTLSPolicySpec>
export type ProxyPolicy = WithSpec<'ProxyPolicy', ProxyPolicySpec>
export type ProxyBackend = WithSpec<'ProxyBackend', ProxyBackendSpec>
type ProxyParameters = WithSpec<'ProxyParameters', ProxyParametersSpec>
export type InferencePool = WithSpec<'InferencePool', InferencePoolSpec>
export type Service = WithSpec<'Service', ServiceSpec>
export type EndpointSlice = Envelope<'EndpointSlice'> & EndpointSliceFields
export type Pod = Envelope<'Pod'> & { readonly spec?: PodSpec; readonly status?: PodStatus }
export type Secret = Envelope<'Secret'> & KeyData & { readonly type?: string }
export type ConfigMap = Envelope<'ConfigMap'> & KeyData & { readonly binaryData?: Readonly<Record<string, string>> }
type Namespace = Envelope<'Namespace'>

/** Every kind that the operator reads. */
export interface ObjectByKind {
  GatewayClass: GatewayClass
  Gateway: Gateway
  ListenerSet: ListenerSet
  HTTPRoute: HTTPRoute
  GRPCRoute: GRPCRoute
  TLSRoute: TLSRoute
  TCPRoute: TCPRoute
  ReferenceGrant: ReferenceGrant
  BackendTLSPolicy: BackendTLSPolicy
  ProxyPolicy: ProxyPolicy
  ProxyBackend: ProxyBackend
  ProxyParameters: ProxyParameters
  InferencePool: InferencePool
  Service: Service
  EndpointSlice: EndpointSlice
  Pod: Pod
  Secret: Secret
  ConfigMap: ConfigMap
  Namespace: Namespace
}

export type Kind = keyof ObjectByKind
export type KubeObject = ObjectByKind[Kind]

/** API group and served versions of a kind, newest first; a source brings every object to the newest. */
export interface KindInfo {
  readonly group: string
  readonly versions: readonly string[]
  readonly isClusterScoped?: true
}

export const kinds: Readonly<Record<Kind, KindInfo>> = {
  GatewayClass: { group: GATEWAY_GROUP, versions: ['v1', 'v1beta1'], isClusterScoped: true },
  Gateway: { group: GATEWAY_GROUP, versions: ['v1', 'v1beta1'] },
  ListenerSet: { group: GATEWAY_GROUP, versions: ['v1'] },
  HTTPRoute: { group: GATEWAY_GROUP, versions: ['v1', 'v1beta1'] },
  GRPCRoute: { group: GATEWAY_GROUP, versions: ['v1', 'v1alpha2'] },
  TLSRoute: { group: GATEWAY_GROUP, versions: ['v1', 'v1alpha3', 'v1alpha2'] },
  TCPRoute: { group: GATEWAY_GROUP, versions: ['v1', 'v1alpha2'] },
  ReferenceGrant: { group: GATEWAY_GROUP, versions: ['v1', 'v1beta1', 'v1alpha2'] },
  BackendTLSPolicy: { group: GATEWAY_GROUP, versions: ['v1', 'v1alpha3'] },
  ProxyPolicy: { group: GROUP, versions: [VERSION] },
  ProxyBackend: { group: GROUP, versions: [VERSION] },
  ProxyParameters: { group: GROUP, versions: [VERSION] },
  InferencePool: { group: INFERENCE_GROUP, versions: ['v1'] },
  Service: { group: '', versions: ['v1'] },
  EndpointSlice: { group: 'discovery.k8s.io', versions: ['v1'] },
  Pod: { group: '', versions: ['v1'] },
  Secret: { group: '', versions: ['v1'] },
  ConfigMap: { group: '', versions: ['v1'] },
  Namespace: { group: '', versions: ['v1'], isClusterScoped: true },
}

/** Kinds that are read only where InferencePools are turned on. */
export const inferenceKinds: ReadonlySet<Kind> = new Set(['InferencePool', 'Pod'])

/** apiVersion that every object of `kind` is brought to. */
export function apiVersionOf(kind: Kind): string {
  const { group, versions } = kinds[kind]
  return group === '' ? (versions[0] ?? '') : `${group}/${versions[0]}`
}

/** `<namespace>/<name>`, or `<name>` for cluster-scoped kinds. */
export function keyOf(object: { readonly metadata: { readonly namespace: string; readonly name: string } }): string {
  const { namespace, name } = object.metadata
  return namespace === '' ? name : `${namespace}/${name}`
}
