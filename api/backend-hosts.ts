import { readRuntimeArn, runtimeHost } from './arn.ts'
import type { Cloud } from './identity-hosts.ts'

/** Default port of providers and agent runtimes. */
const HTTPS_PORT = 443
const HTTP_PORT = 80
export const DEFAULT_BEDROCK_REGION = 'us-east-1'

export const bedrockHost = (region = DEFAULT_BEDROCK_REGION): string => `bedrock-runtime.${region}.amazonaws.com`

export const modelArmorHost = (location: string): string => `modelarmor.${location}.rep.googleapis.com`

export function vertexHost(region: string): string {
  if (region === 'global' || region === '') return 'aiplatform.googleapis.com'
  return region === 'us' || region === 'eu' ? `aiplatform.${region}.rep.googleapis.com` : `${region}-aiplatform.googleapis.com`
}

/** Splits an endpoint of Azure OpenAI, `host`, `host:port` or a URL, into host and port. Ignores scheme and path. */
export function splitEndpoint(endpoint: string): { host: string; port: number | undefined } {
  const authority = endpoint
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/[/?#].*$/, '')
  const [, host = authority, port] = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(authority) ?? []
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: port === undefined ? undefined : Number(port) }
}

/** The parts of a base URL of a valid config: `http://` or `https://`, host, port and path. */
export function splitBaseUrl(url: string): { readonly host: string; readonly port: number; readonly isTls: boolean; readonly path: string } {
  const { host, port } = splitEndpoint(url)
  const isTls = /^https:/i.test(url)
  return { host, port: port ?? (isTls ? HTTPS_PORT : HTTP_PORT), isTls, path: url.replace(/^https?:\/\/[^/]*/i, '').replace(/\/+$/, '') }
}

/** Credentials of the policies of a backend or of its parts, as far as they matter here. */
export interface AuthSection {
  readonly auth?: {
    readonly cloudA?: { readonly secretRef?: object }
    readonly cloudB?: { readonly secretRef?: object }
    readonly cloudC?: object
  }
}

interface Place {
  readonly host: string
  readonly port: number
}

interface Provider extends Partial<Place> {
  readonly name?: string
  readonly policies?: AuthSection
  readonly providerB?: { readonly endpoint: string }
  readonly providerE?: { readonly region: string }
  readonly providerF?: { readonly region?: string }
  readonly custom?: { readonly baseUrl: string }
}

/** The fields of a ProxyBackend, or of a backend of the config, that name hosts. */
interface BackendFields {
  readonly static?: Place
  readonly a2a?: Place
  readonly ai?: { readonly provider?: Provider; readonly groups?: readonly { readonly providers: readonly Provider[] }[] }
  readonly mcp?: { readonly targets: readonly { readonly name: string; readonly static?: Place & { readonly policies?: AuthSection } }[] }
  readonly cloudBackend?: { readonly agentRuntime?: { readonly agentRuntimeRef: string } }
}

/** A host that a backend sends requests to, because of the field at `path`. */
export interface BackendHost extends Place {
  readonly path: string
  /** Part that policies target by `sectionName`; empty: the backend itself. */
  readonly section: string
  /** Policies of the part, stronger than those of the backend. */
  readonly policies: AuthSection | undefined
  /** Cloud whose credentials are sent if no policy sets others. */
  readonly identity: Cloud | undefined
}

/** The hosts that a backend names. Those of Services, and those that clients choose, are not among them. */
export function listHosts(backend: BackendFields): BackendHost[] {
  const { a2a, ai, mcp, cloudBackend } = backend
  const plain = (path: string, { host, port }: Place): BackendHost => ({ path, host, port, section: '', policies: undefined, identity: undefined })
  const runtime = cloudBackend?.agentRuntime && readRuntimeArn(cloudBackend.agentRuntime.agentRuntimeRef)
  const groups = (ai?.groups ?? []).flatMap(({ providers }, group) =>
    providers.flatMap((provider, index) => providerHost(`ai.groups.${group}.providers.${index}`, provider) ?? []),
  )
  return [
    ...(backend.static === undefined ? [] : [plain('static.host', backend.static)]),
    ...(a2a === undefined ? [] : [plain('a2a.host', a2a)]),
    ...(ai?.provider === undefined ? [] : [providerHost('ai.provider', { ...ai.provider, name: 'backend' }) ?? []].flat()),
    ...groups,
    ...(mcp?.targets ?? []).flatMap(({ name, static: place }, index) =>
      place === undefined ? [] : [{ ...plain(`mcp.targets.${index}.static.host`, place), section: name, policies: place.policies }],
    ),
    ...(runtime === undefined || typeof runtime === 'string'
      ? []
      : [{ ...plain('cloudBackend.agentCore.agentRuntimeRef', { host: runtimeHost(runtime), port: HTTPS_PORT }), identity: 'AWS' as const }]),
  ]
}

function providerHost(path: string, provider: Provider): BackendHost | undefined {
  const { name: section = '', host, port = HTTPS_PORT, policies, providerB, providerE, providerF, custom } = provider
  const at = (field: string, place: Place, identity?: Cloud): BackendHost => ({ path: `${path}.${field}`, ...place, section, policies, identity })
  if (host !== undefined) return at('host', { host, port })
  if (custom !== undefined) {
    const url = splitBaseUrl(custom.baseUrl)
    return at('custom.baseUrl', { host: url.host, port: url.port })
  }
  if (providerB !== undefined) {
    const endpoint = splitEndpoint(providerB.endpoint)
    return at('azureOpenAI.endpoint', { host: endpoint.host, port: endpoint.port ?? port }, 'Azure')
  }
  if (providerE !== undefined) return at('vertexAI.region', { host: vertexHost(providerE.region), port }, 'Google Cloud')
  return providerF === undefined ? undefined : at('bedrock.region', { host: bedrockHost(providerF.region), port }, 'AWS')
}
