/**
 * The fields of Gateway API v1 specs that the operator reads, as an API server returns them: fields with a default are always set.
 * Field documentation: https://gateway-api.sigs.k8s.io/reference/spec/
 */

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] }[]
}

export interface LocalRef {
  readonly group: string
  readonly kind: string
  readonly name: string
}

export interface ObjectRef extends LocalRef {
  readonly namespace?: string
}

export interface ParentRef extends ObjectRef {
  readonly sectionName?: string
  readonly port?: number
}

export interface BackendObjectRef extends ObjectRef {
  readonly port?: number
}

export interface GatewayClassSpec {
  readonly controllerName: string
  readonly parametersRef?: ObjectRef
}

type FromNamespaces = 'All' | 'Selector' | 'Same' | 'None'
export interface NamespaceRule {
  readonly from: FromNamespaces
  readonly selector?: LabelSelector
}

export interface ListenerTls {
  readonly mode: 'Terminate' | 'Passthrough'
  readonly certificateRefs?: readonly ObjectRef[]
  readonly options?: Readonly<Record<string, string>>
}

/** A listener of a Gateway or ListenerSet. */
export interface ListenerSpec {
  readonly name: string
  readonly hostname?: string
  /** 0 or absent in ListenerSets of older versions: the default port of the protocol. */
  readonly port?: number
  readonly protocol: string
  readonly tls?: ListenerTls
  readonly allowedRoutes: {
    readonly namespaces: NamespaceRule
    readonly kinds?: readonly { readonly group: string; readonly kind: string }[]
  }
}

export interface FrontendValidation {
  readonly caCertificateRefs: readonly ObjectRef[]
  readonly mode: 'AllowValidOnly' | 'AllowInsecureFallback'
}
export interface FrontendTls {
  readonly default: { readonly validation?: FrontendValidation }
  readonly perPort?: readonly { readonly port: number; readonly tls: { readonly validation?: FrontendValidation } }[]
}

export interface GatewaySpec {
  readonly gatewayClassName: string
  readonly listeners: readonly ListenerSpec[]
  readonly addresses?: readonly { readonly type: string; readonly value?: string }[]
  readonly infrastructure?: { readonly parametersRef?: LocalRef }
  readonly allowedListeners?: { readonly namespaces: NamespaceRule }
  /** Not supported: reported in the status. */
  readonly defaultScope?: 'All' | 'None'
  readonly tls?: { readonly backend?: { readonly clientCertificateRef?: ObjectRef }; readonly frontend?: FrontendTls }
}

export interface ListenerSetSpec {
  readonly parentRef: ObjectRef
  readonly listeners: readonly ListenerSpec[]
}

interface RouteSpec {
  readonly parentRefs?: readonly ParentRef[]
  /** Not supported: reported in the status. */
  readonly useDefaultGateways?: 'All' | 'None'
}

export interface HeaderFilter {
  readonly set?: readonly { readonly name: string; readonly value: string }[]
  readonly add?: readonly { readonly name: string; readonly value: string }[]
  readonly remove?: readonly string[]
}
export interface PathModifier {
  readonly type: string
  readonly replaceFullPath?: string
  readonly replacePrefixMatch?: string
}
export interface RedirectFilter {
  readonly scheme?: string
  readonly hostname?: string
  readonly path?: PathModifier
  readonly port?: number
  readonly statusCode?: number
}
export interface RewriteFilter {
  readonly hostname?: string
  readonly path?: PathModifier
}
export interface MirrorFilter {
  readonly backendRef: BackendObjectRef
  readonly percent?: number
  readonly fraction?: { readonly numerator: number; readonly denominator: number }
}
export interface CorsFilter {
  readonly allowOrigins?: readonly string[]
  readonly allowCredentials?: boolean
  readonly allowMethods?: readonly string[]
  readonly allowHeaders?: readonly string[]
  readonly exposeHeaders?: readonly string[]
  readonly maxAge?: number
}
export interface ExternalAuthFilter {
  readonly protocol: 'HTTP' | 'GRPC'
  readonly backendRef: BackendObjectRef
  readonly grpc?: { readonly allowedHeaders?: readonly string[] }
  readonly http?: { readonly path?: string; readonly allowedHeaders?: readonly string[]; readonly allowedResponseHeaders?: readonly string[] }
  readonly forwardBody?: { readonly maxSize?: number }
}
/** HTTPRoute and GRPCRoute filters; GRPCRoute has no redirect, rewrite, CORS and external auth. */
export interface RouteFilter {
  readonly type: string
  readonly requestHeaderModifier?: HeaderFilter
  readonly responseHeaderModifier?: HeaderFilter
  readonly requestMirror?: MirrorFilter
  readonly requestRedirect?: RedirectFilter
  readonly urlRewrite?: RewriteFilter
  readonly cors?: CorsFilter
  readonly externalAuth?: ExternalAuthFilter
}
export interface RouteBackendRef extends BackendObjectRef {
  readonly weight: number
  readonly filters?: readonly RouteFilter[]
}

export interface ValueMatch {
  readonly type: string
  readonly name: string
  readonly value: string
}
/** GEP-1619, with `sessionName` and `cookieConfig` of Gateway API 1.6, and `cookie` and `header` of later versions. */
export interface SessionPersistence {
  readonly type?: string
  readonly absoluteTimeout?: string
  readonly sessionName?: string
  readonly cookieConfig?: { readonly lifetimeType?: string }
  readonly cookie?: { readonly name?: string; readonly path?: string; readonly lifetimeType?: string }
  readonly header?: { readonly name?: string }
}
export interface HTTPRouteMatch {
  readonly path?: { readonly type: string; readonly value: string }
  readonly headers?: readonly ValueMatch[]
  readonly queryParams?: readonly ValueMatch[]
  readonly method?: string
}
export interface HTTPRouteRule {
  readonly name?: string
  readonly matches?: readonly HTTPRouteMatch[]
  readonly filters?: readonly RouteFilter[]
  readonly backendRefs?: readonly RouteBackendRef[]
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string }
  readonly retry?: { readonly codes?: readonly number[]; readonly attempts?: number; readonly backoff?: string }
  readonly sessionPersistence?: SessionPersistence
}
export interface HTTPRouteSpec extends RouteSpec {
  readonly hostnames?: readonly string[]
  readonly rules?: readonly HTTPRouteRule[]
}

export interface GRPCRouteMatch {
  readonly method?: { readonly type: string; readonly service?: string; readonly method?: string }
  readonly headers?: readonly ValueMatch[]
}
interface GRPCRouteRule {
  readonly name?: string
  readonly matches?: readonly GRPCRouteMatch[]
  readonly filters?: readonly RouteFilter[]
  readonly backendRefs?: readonly RouteBackendRef[]
  readonly sessionPersistence?: SessionPersistence
}
export interface GRPCRouteSpec extends RouteSpec {
  readonly hostnames?: readonly string[]
  readonly rules?: readonly GRPCRouteRule[]
}

interface L4RouteRule {
  readonly name?: string
  readonly sessionPersistence?: undefined
  readonly backendRefs?: readonly (BackendObjectRef & { readonly weight: number })[]
}
export interface TLSRouteSpec extends RouteSpec {
  readonly hostnames?: readonly string[]
  readonly rules: readonly L4RouteRule[]
}
export interface TCPRouteSpec extends RouteSpec {
  readonly rules: readonly L4RouteRule[]
}

export interface ReferenceGrantSpec {
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[]
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[]
}

export interface BackendTLSPolicySpec {
  readonly targetRefs: readonly (LocalRef & { readonly sectionName?: string })[]
  readonly validation: {
    readonly caCertificateRefs?: readonly LocalRef[]
    readonly wellKnownCACertificates?: string
    readonly hostname: string
    readonly subjectAltNames?: readonly { readonly type: string; readonly hostname?: string; readonly uri?: string }[]
  }
  readonly options?: Readonly<Record<string, string>>
}
