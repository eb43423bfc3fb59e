import type { DialRules } from '#api/address.ts'
import { listHosts } from '#api/backend-hosts.ts'
import type { MessageCode } from '#api/messages/code.ts'
import { parseDuration, parseTimeout } from '#api/duration.ts'
import { parsePins } from '#api/mcp-pins/pins.ts'
import { findHostnameProblem } from '#api/hostname.ts'
import { PEER_PORT } from '#api/names.ts'
import { findToolClashes } from '#api/tool-clashes.ts'
import type {
  Backend,
  BackendFull,
  ConfigFile,
  FileBind,
  FileListener,
  FileRetry,
  FileRoute,
  FileTcpRoute,
  FileTimeouts,
  FileWeightedBackend,
  GatewayRef,
  Listener,
  Policy,
  RouteMatch,
  RouteRetry,
  RouteTimeouts,
  Traffic,
  WeightedBackend,
} from '#gen/config/types.ts'
import { withoutBrackets } from '../../http/message.ts'
import { authenticatesClients, describeRefusedHost, dialRulesOf, isOpen } from './addresses.ts'
import { loopbackAddresses } from '../short/listen.ts'
import { readPluginFiles } from './plugin-files.ts'
import { readListenerMaterial, type ReadText } from './tls.ts'
import type { ConfigMessage } from '../store.ts'
import { formatPath, type SchemaProblem, type SourceOf } from '../validate.ts'

type Path = readonly (string | number)[]
type Protocol = Listener['protocol']

/**
 * Messages of a file, and problems that the schema cannot express; the messages are complete only if there are none. With YAML
 * aliases several messages may share an object. Serialize them before use, because caches go by the identity of such objects.
 */
export interface FlatFile {
  readonly messages: readonly ConfigMessage[]
  readonly problems: readonly SchemaProblem[]
  /** Values that cannot work, although the messages are valid. */
  readonly warnings: readonly SchemaProblem[]
  /** Ports that anyone can use. */
  readonly notes: readonly SchemaProblem[]
}

export interface FlattenOptions {
  /** Gateway of the listeners. */
  readonly gateway: GatewayRef
  /** Reads certificates, keys and sources of plugins. */
  readonly read: ReadText
  /**
   * Whether no config stream is used beside the file. Then sources of plugins may be files, MCP servers commands, and ports without authentication listen on
   * loopback. Default: true.
   */
  readonly isAlone?: boolean
  /** Hides values that come from placeholders. */
  readonly sourceOf?: SourceOf
  /** Path in the written file, which problems name, of a path in the long form. */
  readonly originOf?: (path: Path) => Path
}

/**
 * Turns a valid file into the messages that the stream would carry: nested objects get a key made of names, inline
 * policies become Policy messages with a target, inline backends become Backend messages.
 */
export function flattenFile(
  file: ConfigFile,
  { gateway, read, isAlone = true, sourceOf = () => undefined, originOf = (path) => path }: FlattenOptions,
): FlatFile {
  const flattener = new Flattener(file, { gateway, read, isAlone, sourceOf, originOf })
  return flattener.run()
}

class Flattener {
  readonly #file: ConfigFile
  readonly #gateway: GatewayRef
  readonly #read: ReadText
  readonly #isAlone: boolean
  readonly #sourceOf: SourceOf
  readonly #originOf: (path: Path) => Path
  readonly #dialRules: DialRules
  readonly #messages: ConfigMessage[] = []
  readonly #problems: SchemaProblem[] = []
  readonly #warnings: SchemaProblem[] = []
  readonly #notes: SchemaProblem[] = []
  /** `<kind> <key>` -> path of the value that has it. */
  readonly #keys = new Map<string, Path>()
  #listeners = 0
  #routes = 0
  #tcpRoutes = 0

  constructor(file: ConfigFile, { gateway, read, isAlone, sourceOf, originOf }: Required<FlattenOptions>) {
    this.#file = file
    this.#dialRules = dialRulesOf(file)
    this.#gateway = gateway
    this.#read = read
    this.#isAlone = isAlone
    this.#sourceOf = sourceOf
    this.#originOf = originOf
  }

  run(): FlatFile {
    const { config = {}, binds = [], backends = [], services = [], secrets = [], policies = [] } = this.#file
    for (const field of ['connectionMinTerminationDeadline', 'connectionTerminationDeadline'] as const) {
      const value = config[field]
      if (value !== undefined && parseDuration(value) === undefined)
        this.#report(['config', field], `must be a duration such as 30s, is ${this.#show(['config', field], value)}`)
    }
    for (const [index, service] of services.entries()) this.#add({ kind: 'service', message: service }, ['services', index, 'key'])
    for (const [index, secret] of secrets.entries()) this.#add({ kind: 'secret', message: secret }, ['secrets', index, 'key'])
    for (const [index, policy] of policies.entries()) this.#addPolicy(policy, ['policies', index, 'key'], ['policies', index, 'traffic'])
    for (const [index, { name, host, ...rest }] of backends.entries()) {
      const path = ['backends', index]
      this.#add({ kind: 'backend', message: { key: this.#keyOf(name), ...this.#staticOf(host, [...path, 'host']), ...rest } }, [...path, 'name'])
    }
    const ports = new Map<number, Path>()
    for (const [index, bind] of binds.entries()) {
      const path = ['binds', index]
      if (bind.port === PEER_PORT) this.#report([...path, 'port'], `${bind.port} is reserved for messages between replicas of the gateway; use another port`)
      else if (ports.has(bind.port))
        this.#report([...path, 'port'], `${bind.port} is already bound by ${this.#format(ports.get(bind.port) ?? [])}; put the listeners together`)
      else ports.set(bind.port, path)
      this.#addBind(bind, path)
    }
    return { messages: this.#messages, problems: this.#problems, warnings: this.#warnings, notes: this.#notes }
  }

  #addBind(bind: FileBind, path: Path): void {
    const { port, listeners } = bind
    const addresses = bind.addresses ?? this.#defaultAddresses(bind)
    if (this.#isAlone && isOpen(bind, this.#file, this.#gateway))
      this.#notes.push({
        path: this.#originOf([...path, 'addresses']),
        text: `port ${port} accepts requests of other machines without authentication, and they use the credentials of its backends; add keys, or listen on 127.0.0.1`,
        code: 'PX3016',
      })
    const { namespace, name } = this.#gateway
    const key = `${port}/${namespace}/${name}`
    this.#add({ kind: 'bind', message: { key, port, ...(addresses !== undefined && { addresses }) } }, [...path, 'port'])
    const protocols = listeners.map((listener, index) => this.#addListener(listener, key, [...path, 'listeners', index]))
    if (protocols.includes('TCP') && protocols.length > 1)
      this.#report([...path, 'listeners'], 'a TCP listener takes every connection of its port; give the others a port of their own')
  }

  /** Beside a config stream the operator's Gateway is in charge, and a pod is reached through a Service. */
  #defaultAddresses(bind: FileBind): string[] | undefined {
    return this.#isAlone && !authenticatesClients(bind, this.#file, this.#gateway) ? loopbackAddresses() : undefined
  }

  #addListener(listener: FileListener, bind: string, path: Path): Protocol {
    const { name = `listener${this.#listeners}`, hostname, tls, routes = [], tcpRoutes = [], policies } = listener
    this.#listeners += 1
    const protocol = listener.protocol ?? defaultProtocol(listener)
    this.#checkHostname(hostname, [...path, 'hostname'])
    const key = `${this.#gateway.namespace}/${this.#gateway.name}.${name}`
    if (tls === undefined && (protocol === 'HTTPS' || protocol === 'TLS')) this.#report(path, `tls is missing; ${protocol} needs it`)
    if (tls !== undefined && (protocol === 'HTTP' || protocol === 'TCP'))
      this.#report([...path, 'tls'], `is not used with protocol ${protocol}; write HTTPS or TLS`)
    if (protocol === 'HTTPS' && tls?.mode === 'Passthrough') this.#report([...path, 'tls', 'mode'], 'Passthrough needs protocol TLS')
    const isHttp = protocol === 'HTTP' || protocol === 'HTTPS'
    if (isHttp && tcpRoutes.length > 0) this.#report([...path, 'tcpRoutes'], `are not used with protocol ${protocol}; write routes`)
    if (!isHttp && routes.length > 0) this.#report([...path, 'routes'], `are not used with protocol ${protocol}; write tcpRoutes`)
    const message: Listener = {
      key,
      bind,
      gateway: this.#gateway,
      name,
      protocol,
      ...(hostname !== undefined && { hostname }),
      ...(this.#file.config?.plugins?.inProcess === true && { inProcessPlugins: true }),
    }
    this.#add({ kind: 'listener', message: tls === undefined ? message : { ...message, tls: this.#toTls(tls, key, [...path, 'tls']) } }, [...path, 'name'])
    if (policies !== undefined)
      this.#addTrafficPolicy(policies, `listener.${name}`, { kind: 'Gateway', ...this.#gateway, section: name }, [...path, 'policies'])
    for (const [index, route] of routes.entries()) this.#addRoute(route, key, [...path, 'routes', index])
    for (const [index, route] of tcpRoutes.entries()) this.#addTcpRoute(route, protocol, key, [...path, 'tcpRoutes', index])
    return protocol
  }

  #toTls(tls: NonNullable<FileListener['tls']>, listener: string, path: Path): NonNullable<Listener['tls']> {
    const mode = tls.mode ?? 'Terminate'
    if (mode === 'Passthrough') {
      for (const field of ['cert', 'key', 'clientCa'] as const)
        if (tls[field] !== undefined) this.#report([...path, field], 'is not used with mode Passthrough')
      return { mode }
    }
    const certificate = `${listener}.tls`
    const clientCa = `${listener}.client-ca`
    const { secrets, problems } = readListenerMaterial(tls, certificate, clientCa, this.#read)
    for (const { field, text } of problems) this.#report(field === '' ? path : [...path, field], text, 'PX3009')
    for (const secret of secrets) this.#add({ kind: 'secret', message: secret }, path)
    return {
      mode,
      certificates: [certificate],
      ...(tls.clientCa !== undefined && { clientValidation: { mode: 'AllowValidOnly', caCertificates: [clientCa] } }),
    }
  }

  #addRoute(file: FileRoute, listener: string, path: Path): void {
    const { name = `route${this.#routes}`, hostnames, matches, policies, backends, filters, timeouts, retry, sessionPersistence } = file
    const creationTimestamp = orderTimestamp(this.#routes++)
    const origin = this.#shortFormOf(path, name)
    for (const [index, hostname] of (hostnames ?? []).entries()) this.#checkHostname(hostname, [...path, 'hostnames', index])
    for (const filter of ['redirect', 'urlRewrite'] as const) this.#checkHostname(filters?.[filter]?.hostname, [...path, 'filters', filter, 'hostname'], true)
    const { namespace } = this.#gateway
    this.#add(
      {
        kind: 'route',
        message: {
          key: `${this.#keyOf(name)}.00`,
          listeners: [listener],
          route: { kind: 'HTTPRoute', namespace, name, ruleIndex: 0 },
          creationTimestamp,
          ...(origin !== undefined && { origin }),
          ...(hostnames !== undefined && { hostnames }),
          ...(matches !== undefined && { matches: matches.map(lowerHeaderNames) }),
          ...(filters !== undefined && { filters }),
          ...(timeouts !== undefined && { timeouts: toMilliseconds(timeouts) }),
          ...(retry !== undefined && { retry: toRetry(retry) }),
          ...(sessionPersistence !== undefined && { sessionPersistence }),
          ...(backends !== undefined && { backends: this.#toBackends(backends, name, [...path, 'backends']) }),
        },
      },
      [...path, 'name'],
    )
    if (policies !== undefined) this.#addTrafficPolicy(policies, `route.${name}`, { kind: 'HTTPRoute', namespace, name }, [...path, 'policies'])
  }

  /** The field of a short form that a rule is made from: a model, or the section for lists of models, errors and MCP. */
  #shortFormOf(path: Path, name: string): string | undefined {
    if (this.#originOf(path)[0] === path[0]) return undefined
    // On a port that sections share, the name tells them apart.
    const [, section = '', model] = /^(llm|models|mcp)(?:\.(.*))?/.exec(name) ?? []
    return model === undefined ? section : `${section === 'llm' ? 'llm.models' : section}.${model}`
  }

  #addTcpRoute(file: FileTcpRoute, protocol: Protocol, listener: string, path: Path): void {
    const { name = `tcproute${this.#tcpRoutes}`, hostnames, backends } = file
    const creationTimestamp = orderTimestamp(this.#tcpRoutes++)
    for (const [index, hostname] of (hostnames ?? []).entries()) this.#checkHostname(hostname, [...path, 'hostnames', index])
    const isTls = protocol === 'TLS'
    if (!isTls && hostnames !== undefined) this.#report([...path, 'hostnames'], `are not used with protocol ${protocol}; only TLS carries a name`)
    this.#add(
      {
        kind: 'tcpRoute',
        message: {
          key: `${this.#keyOf(name)}.00.${isTls ? 'tls' : 'tcp'}`,
          listeners: [listener],
          route: { kind: isTls ? 'TLSRoute' : 'TCPRoute', namespace: this.#gateway.namespace, name, ruleIndex: 0 },
          creationTimestamp,
          ...(hostnames !== undefined && { hostnames }),
          ...(backends !== undefined && { backends: this.#toBackends(backends, name, [...path, 'backends']) }),
        },
      },
      [...path, 'name'],
    )
  }

  #toBackends(backends: readonly FileWeightedBackend[], route: string, path: Path): WeightedBackend[] {
    return backends.map((backend, index) => ({
      ref: this.#toBackendRef(backend, `${this.#keyOf(route)}.backend${index}`, [...path, index]),
      ...(backend.weight !== undefined && { weight: backend.weight }),
    }))
  }

  #toBackendRef({ host, service, backend, weight: _weight, ...inline }: FileWeightedBackend, key: string, path: Path): WeightedBackend['ref'] {
    if (service !== undefined) {
      if (this.#file.services?.some((one) => one.key === service.name) !== true)
        this.#report([...path, 'service', 'name'], `${service.name} is not the key of one of services`)
      this.#rejectPolicies(inline.policies, path, `put them under policies, with a target of kind Service`)
      return { service: service.name, port: service.port }
    }
    if (backend !== undefined) {
      if (this.#file.backends?.some((one) => one.name === backend) !== true) this.#report([...path, 'backend'], `${backend} is not the name of one of backends`)
      this.#rejectPolicies(inline.policies, path, `write them on the backend ${backend}`)
      return { backend: this.#keyOf(backend) }
    }
    const fixed = this.#staticOf(host, [...path, 'host'])
    if (host !== undefined && inline.policies === undefined) {
      if (fixed.static !== undefined) this.#checkHost(fixed.static, [...path, 'host'])
      return { address: host }
    }
    const message: Backend = { key, ...fixed, ...inline }
    this.#add({ kind: 'backend', message }, path)
    return { backend: key }
  }

  #rejectPolicies(policies: BackendFull | undefined, path: Path, fix: string): void {
    if (policies !== undefined) this.#report([...path, 'policies'], `belong to a destination that others may share; ${fix}`)
  }

  #staticOf(host: string | undefined, path: Path): Pick<Backend, 'static'> {
    if (host === undefined) return {}
    const [, name = '', port] = /^(\[[0-9a-fA-F:.]+\]|[^\s:[\]/@?#]+):(\d{1,5})$/.exec(host) ?? []
    if (port === undefined || Number(port) < 1 || Number(port) > 65_535) {
      this.#report(path, `must be host:port with a port of 1 to 65535, is ${this.#show(path, host)}`)
      return {}
    }
    return { static: { host: withoutBrackets(name), port: Number(port) } }
  }

  /** A host that the data plane does not connect to. The text has the value, so that of a placeholder is not described. */
  #checkHost({ host, port }: { readonly host: string; readonly port: number }, path: Path, field = ''): void {
    const problem = this.#isAlone ? describeRefusedHost(host, port, this.#dialRules) : undefined
    if (problem !== undefined) this.#warnings.push({ path: this.#originOf(path), text: `${field}${problem}`, code: 'PX1361' })
  }

  #checkHostname(name: string | undefined, path: Path, isPrecise?: boolean): void {
    const problem = name === undefined ? undefined : findHostnameProblem(name, isPrecise)
    if (name === undefined || problem === undefined) return
    const fix = problem.fixed === undefined || this.#sourceOf(this.#originOf(path)) !== undefined ? '' : `; write ${JSON.stringify(problem.fixed)}`
    this.#report(path, `is ${this.#show(path, name)}: ${problem.text}${fix}`)
  }

  #addTrafficPolicy(traffic: Traffic, name: string, target: Policy['target'], path: Path): void {
    const { namespace } = this.#gateway
    this.#addPolicy({ key: `traffic/${namespace}/${name}:0`, policy: { kind: 'ProxyPolicy', namespace, name }, target, traffic }, [], path)
  }

  #addPolicy(policy: Policy, path: Path, trafficPath: Path): void {
    const { message, problems, warnings } = readPluginFiles(policy, this.#isAlone ? this.#read : undefined)
    for (const { path: within, text } of problems) this.#report([...trafficPath, ...within], text, 'PX3012')
    for (const { path: within, text } of warnings) this.#warnings.push({ path: this.#originOf([...trafficPath, ...within]), text, code: 'PX3010' })
    this.#add({ kind: 'policy', message }, path)
  }

  #add(message: ConfigMessage, path: Path): void {
    const id = `${message.kind} ${message.message.key}`
    const other = this.#keys.get(id)
    if (other === undefined) this.#keys.set(id, path)
    else if (message.kind !== 'bind')
      this.#report(path, `the ${message.kind} ${message.message.key} exists already, as ${this.#format(other)}; give one another name`)
    this.#messages.push(message)
    if (message.kind !== 'backend') return
    // Beside a stream, pods have rules of their own.
    if (this.#isAlone) for (const place of listHosts(message.message)) this.#checkHost(place, path, `${place.path}: `)
    if (message.message.mcp === undefined) return
    const pins = parsePins(message.message.mcp.toolPins?.pins ?? '')
    if (typeof pins === 'string') this.#report([...path, 'mcp', 'toolPins', 'pins'], pins, 'PX1333')
    if (!this.#isAlone)
      for (const [index, { command }] of message.message.mcp.targets.entries())
        if (command !== undefined)
          this.#report([...path, 'mcp', 'targets', index, 'command'], 'is not run from a file that is used together with XDS_ADDRESS', 'PX3015')
    for (const clash of findToolClashes(message.message.mcp)) this.#report([...path, 'mcp', ...clash.path], clash.message, 'PX1323')
  }

  #keyOf(name: string): string {
    return `${this.#gateway.namespace}/${name}`
  }

  #show(path: Path, value: string): string {
    return this.#sourceOf(this.#originOf(path)) ?? JSON.stringify(value)
  }

  #format(path: Path): string {
    return formatPath(this.#originOf(path))
  }

  #report(path: Path, text: string, code: MessageCode = 'PX3008'): void {
    this.#problems.push({ path: this.#originOf(path), text, code })
  }
}

const defaultProtocol = ({ tls, routes, tcpRoutes }: FileListener): Protocol => {
  const isTcp = tcpRoutes !== undefined && routes === undefined
  if (tls !== undefined) return isTcp || tls.mode === 'Passthrough' ? 'TLS' : 'HTTPS'
  return isTcp ? 'TCP' : 'HTTP'
}

/** The oldest of equal matches wins; in a file, the first one counts as the oldest. */
const orderTimestamp = (index: number): string => new Date(index * 1000).toISOString()

const lowerHeaderNames = (match: RouteMatch): RouteMatch =>
  match.headers === undefined ? match : { ...match, headers: match.headers.map((header) => ({ ...header, name: header.name.toLowerCase() })) }

function toMilliseconds({ request, backendRequest, requestMs, backendRequestMs }: FileTimeouts): RouteTimeouts {
  const total = parseTimeout(request) ?? requestMs
  const attempt = parseTimeout(backendRequest) ?? backendRequestMs
  return { ...(total !== undefined && { requestMs: total }), ...(attempt !== undefined && { backendRequestMs: attempt }) }
}

function toRetry({ backoff, ...retry }: FileRetry): RouteRetry {
  const backoffMs = parseTimeout(backoff) ?? retry.backoffMs
  return { ...retry, ...(backoffMs !== undefined && { backoffMs }) }
}
