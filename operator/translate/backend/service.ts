import { APP_PROTOCOL_A2A, ENDPOINTS_ANNOTATION } from '#api/names.ts'
import type { Endpoint, Service as ServiceMessage, ServicePort as PortMessage } from '#gen/config/types.ts'
import { isIP } from 'node:net'
import { SERVICE_NAME_LABEL, type ServicePort } from '../../source/core.ts'
import type { EndpointSlice, Service } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { servicePorts } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Lookup } from '../common/dependencies.ts'

type AppProtocol = NonNullable<PortMessage['appProtocol']>

const appProtocols: Readonly<Record<string, AppProtocol>> = {
  http: 'HTTP11',
  http2: 'HTTP2',
  grpc: 'GRPC',
  tcp: 'TCP',
  tls: 'TLS',
  https: 'TLS',
  'kubernetes.io/h2c': 'HTTP2',
  'kubernetes.io/ws': 'WS',
  [APP_PROTOCOL_A2A]: 'A2A',
}

/** The protocol of a port: appProtocol, else the prefix of the port's name (operator.md §6.6). */
function appProtocolOf(port: ServicePort): AppProtocol | undefined {
  const text = port.appProtocol?.toLowerCase() ?? (port.name ?? '').split('-')[0] ?? ''
  return Object.hasOwn(appProtocols, text) ? appProtocols[text] : undefined
}

/** Slices of every Service, by `<namespace>/<name>` of the Service. */
export type SliceIndex = Lookup<readonly EndpointSlice[]>

/** Key of the Service that a slice belongs to. */
export const findSliceService = ({ metadata }: EndpointSlice): string => `${metadata.namespace}/${metadata.labels?.[SERVICE_NAME_LABEL] ?? ''}`

export const compareEndpoints = (a: Endpoint, b: Endpoint): number => (a.address < b.address ? -1 : a.address > b.address ? 1 : a.port - b.port)

/** Endpoints of one Service port: ready ones, and those that still serve while they end. */
function endpointsOf(slices: readonly EndpointSlice[], port: ServicePort): Endpoint[] {
  const byAddress = new Map<string, Endpoint>()
  for (const slice of slices) {
    const target = slice.ports?.find((each) => (each.name ?? '') === (port.name ?? ''))
    if (target?.port === undefined) continue
    for (const endpoint of slice.endpoints ?? []) {
      const { ready = true, serving = ready, terminating = false } = endpoint.conditions ?? {}
      if (!ready && !(serving && terminating)) continue
      for (const address of endpoint.addresses) {
        byAddress.set(`${address} ${target.port}`, {
          address,
          port: target.port,
          ...(endpoint.zone === undefined ? {} : { zone: endpoint.zone }),
          ...(endpoint.nodeName === undefined ? {} : { node: endpoint.nodeName }),
          ...(ready ? {} : { draining: true }),
        })
      }
    }
  }
  return [...byAddress.values()].toSorted(compareEndpoints)
}

/** `ip`, `name`, `ip:port`, `name:port` or `[ipv6]:port`; undefined for another form. */
export function parseAddress(text: string, fallbackPort: number): Endpoint | undefined {
  const [, bracketed, bracketedPort] = /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? []
  if (bracketed !== undefined) return toEndpoint(bracketed, bracketedPort, fallbackPort)
  if (isIP(text) === 6) return { address: text, port: fallbackPort }
  const [, address = '', port] = /^([\w.-]+)(?::(\d+))?$/.exec(text) ?? []
  return address === '' ? undefined : toEndpoint(address, port, fallbackPort)
}

function toEndpoint(address: string, port: string | undefined, fallbackPort: number): Endpoint | undefined {
  const number = port === undefined ? fallbackPort : Number(port)
  return number >= 1 && number <= 65_535 ? { address, port: number } : undefined
}

/** Endpoints of a port whose Service has no slices: the annotation (directory mode), else spec.externalName. */
function fixedEndpoints(context: Context, service: Service, port: number): Endpoint[] {
  const annotation = context.options.isStandalone ? service.metadata.annotations?.[ENDPOINTS_ANNOTATION] : undefined
  const texts =
    annotation !== undefined ? annotation.split(',') : service.spec.type === 'ExternalName' && service.spec.externalName ? [service.spec.externalName] : []
  return texts.flatMap((text) => parseAddress(text.trim(), port) ?? []).toSorted(compareEndpoints)
}

/** The messages of one translator, with the slices that they were made from. */
const made = new WeakMap<Context, WeakMap<Service, { readonly own: readonly EndpointSlice[]; readonly message: ServiceMessage }>>()
const NO_SLICES: readonly EndpointSlice[] = []

/**
 * Ports of a Service as messages. `named` are the ports that references name: an ExternalName Service need not list its ports.
 * The message of a Service that did not change keeps its identity.
 */
export function serviceMessage(context: Context, slices: SliceIndex, service: Service, named: ReadonlySet<number>): ServiceMessage {
  const own = slices.get(keyOf(service)) ?? NO_SLICES
  const listed = servicePorts(service)
  if (listed === undefined) {
    const ports = [...named].toSorted((a, b) => a - b).map((port) => ({ port }))
    return describeService(context, own, service, ports)
  }
  let ofContext = made.get(context)
  if (!ofContext) made.set(context, (ofContext = new WeakMap()))
  const last = ofContext.get(service)
  if (last?.own === own) return last.message
  const message = describeService(context, own, service, listed)
  ofContext.set(service, { own, message })
  return message
}

function describeService(context: Context, own: readonly EndpointSlice[], service: Service, ports: readonly ServicePort[]): ServiceMessage {
  const { trafficDistribution, internalTrafficPolicy } = service.spec
  return {
    key: keyOf(service),
    hostname: `${service.metadata.name}.${service.metadata.namespace}.svc.${context.options.clusterDomain}`,
    ports: ports.map((port) => {
      const appProtocol = appProtocolOf(port)
      const targetPort = typeof port.targetPort === 'number' && port.targetPort > 0 ? port.targetPort : port.port
      return {
        port: port.port,
        ...(port.name === undefined ? {} : { name: port.name }),
        ...(appProtocol === undefined ? {} : { appProtocol }),
        endpoints: own.length > 0 ? endpointsOf(own, port) : fixedEndpoints(context, service, targetPort),
      }
    }),
    ...(isDistribution(trafficDistribution) ? { trafficDistribution } : {}),
    ...(internalTrafficPolicy === 'Local' ? { internalTrafficPolicy } : {}),
  }
}

function isDistribution(text: string | undefined): text is NonNullable<ServiceMessage['trafficDistribution']> {
  return text === 'PreferSameZone' || text === 'PreferSameNode' || text === 'PreferClose'
}
