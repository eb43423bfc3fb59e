import type { AddressInfo } from 'node:net'
import type { Backend, BackendFull, MCPBackend, Policy } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../../config/store.ts'
import { Gateway } from '../../../gateway/gateway.ts'
import { endPlugins } from '../../../policy/plugins/host.ts'
import { startHttp1Server, type TestServer } from '../../../net/server/http1/testing.ts'
import { createRegistry, type Registry } from '../../../observe/telemetry/metrics/registry.ts'
import { createPool } from '../../../net/upstream/pools.ts'
import { createMcpFactory } from '../service.ts'
import type { SessionKeys } from '../../../runtime/seal.ts'
import type { PeerMessages } from '../session/sharing.ts'
import type { SessionLimits } from '../session/sessions.ts'
import type { WaitingLimits } from '../session/waiting.ts'
import { testListener, testRoute } from '../../../testing/messages.ts'
import { replaceMessages } from '../../../testing/store.ts'

/** A gateway with one route to one MCP backend, on a loopback port. */
export interface McpGateway {
  readonly url: URL
  readonly server: TestServer
  readonly registry: Registry
  readonly parts: Pick<Gateway, 'destinations' | 'tracer'>
  /** Replaces the given parts of the config. */
  configure(change: GatewayConfig): void
  close(): Promise<void>
}

export interface GatewayConfig {
  readonly mcp?: Partial<MCPBackend>
  readonly policies?: BackendFull
  /** Policies attached to the Gateway or the backend. */
  readonly attached?: readonly Pick<Policy, 'target' | 'backend' | 'traffic' | 'frontend'>[]
  /** Services, by key: addresses of their endpoints at port 80. */
  readonly services?: Readonly<Record<string, readonly AddressInfo[]>>
  readonly backendKey?: string
}

export interface GatewayOptions extends GatewayConfig {
  readonly keys?: SessionKeys
  readonly limits?: SessionLimits
  readonly waitingLimits?: WaitingLimits
  readonly peers?: PeerMessages
  readonly monotonicMs?: () => number
  /** Receives the lines that policies log. */
  readonly onLog?: (message: string, fields?: object) => void
  /** Draws endpoints: returns [0, 1). Default: Math.random. */
  readonly random?: () => number
}

export const testKey = Buffer.alloc(32, 7)

export async function startGateway(options: GatewayOptions): Promise<McpGateway> {
  const store = createConfigStore()
  const registry = createRegistry()
  const { keys = [testKey], limits, waitingLimits, peers, monotonicMs, random, onLog } = options
  const gateway = new Gateway({
    createPool,
    registry,
    ...(monotonicMs && { clocks: { monotonicMs } }),
    ...(random && { random }),
    ...(onLog && { log: { error: onLog, warn: onLog, info: onLog, debug: onLog, trace: onLog, isEnabled: () => true } }),
    factories: { mcp: createMcpFactory({ keys, version: '1.2.3', peers, ...(limits && { limits }), ...(waitingLimits && { waitingLimits }) }) },
  })
  store.subscribe((snapshot) => gateway.update(snapshot))
  let config: GatewayConfig = options
  const configure = (change: GatewayConfig): void => {
    config = { ...config, ...change }
    replaceMessages(store, messagesOf(config))
  }
  configure({})
  const server = await startHttp1Server((exchange) => gateway.handle(exchange))
  return {
    url: new URL(`http://127.0.0.1:${server.port}/mcp`),
    server,
    registry,
    parts: gateway,
    configure,
    async close() {
      await server.close()
      gateway.close()
      endPlugins(registry)
    },
  }
}

function messagesOf({ mcp = {}, policies, attached = [], services = {}, backendKey = 'ns/mcp' }: GatewayConfig): ConfigMessage[] {
  const backend: Backend = { key: backendKey, mcp: { targets: [], ...mcp }, ...(policies && { policies }) }
  return [
    ...testListener,
    testRoute({ backend: backendKey }),
    { kind: 'backend', message: backend },
    ...attached.map((policy, index): ConfigMessage => ({
      kind: 'policy',
      message: { key: `p${index}`, policy: { kind: 'ProxyPolicy', namespace: 'ns', name: `p${index}` }, ...policy },
    })),
    ...Object.entries(services).map(([key, addresses]): ConfigMessage => ({
      kind: 'service',
      message: { key, ports: [{ port: 80, endpoints: addresses.map(({ address, port }) => ({ address, port })) }] },
    })),
  ]
}

/** A static target of the config. */
export function staticTarget(
  name: string,
  port: number,
  more: Partial<NonNullable<MCPBackend['targets'][number]['static']>> = {},
): MCPBackend['targets'][number] {
  return { name, static: { host: '127.0.0.1', port, ...more } }
}
