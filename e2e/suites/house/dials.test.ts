import { describe, expect, test } from '@jest/globals'
import { isTestCode } from './check.ts'
import { findDials } from './dials.ts'
import { listFiles, readText } from '../docs/tree.ts'

const judged = 'asks refuseAddress about each address that it connects to'
const settings = 'an address in the settings of the process, which its owner writes'
const user = 'the connection of the user who runs proxyctl'
const instance = 'a check of the class of a socket that exists'
const local = 'a binding of this name, not the global'

/** Files that take something that can open a connection or resolve a name, what, and why they may. The console runs in browsers and is not in the table. */
const permitted: Readonly<Record<string, readonly [dials: string, reason: string]>> = {
  'dataplane/net/upstream/http1/connect.ts': ['node:net#Socket, node:net#connect, node:tls#connect', judged],
  'dataplane/net/upstream/dial.ts': ['node:dns#lookup', judged],
  'operator/remote/address.ts': ['node:dns#lookup', judged],
  'operator/remote/fetch.ts': ['node:http#request, node:https#request', judged],
  'operator/remote/registry.ts': ['node:http#request, node:https#request', judged],
  'dataplane/net/upstream/cloud/fetch.ts': ['fetch', 'the identity of the process: metadata services and token endpoints of its cloud'],
  'dataplane/program/workers/peers.ts': ['node:tls#connect', 'PEER_PORT of other replicas'],
  'dataplane/program/workers/relay.ts': ['node:net#connect', 'a socket of another worker of this process'],
  'dataplane/management/console/send.ts': ['node:http#request, node:net#connect, node:tls#connect', 'listeners of this process'],
  'dataplane/config/stream/server.ts': ['@grpc/grpc-js#Client, @grpc/grpc-js#credentials', settings],
  'dataplane/program/operator.ts': ['node:dns#lookup', settings],
  'dataplane/store/redis/connection.ts': ['@redis/client#ErrorReply, @redis/client#RESP_TYPES, @redis/client#createClient', settings],
  'dataplane/store/postgres/client.ts': ['pg#*', settings],
  'dataplane/store/postgres/connection.ts': ['pg#*', settings],
  'dataplane/store/ledger/postgres-store.ts': ['pg#*', settings],
  'dataplane/store/ledger/clickhouse-store.ts': ['node:http#request, node:https#request', settings],
  'operator/kube/connection.ts': [
    '@kubernetes/client-node#KubeConfig, node:http#Agent, node:http#request, node:https#Agent, node:https#request',
    'the API server of the kubeconfig or of the pod',
  ],
  'operator/kube/port-forward.ts': ['@kubernetes/client-node#WebSocketHandler', 'the API server of the kubeconfig'],
  'operator/proxyctl/live/admin.ts': ['node:http#Agent, node:http#request', user],
  'operator/proxyctl/mcp/servers.ts': ['fetch', user],
  'operator/proxyctl/live/trace.ts': ['node:http#request, node:https#request', user],
  'operator/proxyctl/plugin/build.ts': ['node:module#createRequire', 'finds packages on the machine of the user'],
  'operator/proxyctl/plugin/types.ts': ['node:module#createRequire', 'finds packages on the machine of the user'],
  'api/codegen/prices.ts': ['fetch', 'runs on the machine of a developer'],
  'api/codegen/protos.ts': ['node:module#createRequire, require', 'runs on the machine of a developer'],
  'dataplane/policy/plugins/guest/import-module.ts': ['import()', 'the module of a plugin, whose imports are checked'],
  'dataplane/policy/plugins/guest/sandbox.ts': ['import()', 'the module of a plugin, whose imports are checked'],
  'dataplane/observe/telemetry/writer.ts': ['node:net#Socket', 'a socket of a file descriptor: standard output'],
  'dataplane/http/splice.ts': ['node:net#Socket, node:tls#TLSSocket', instance],
  'dataplane/net/server/http1/connection.ts': ['node:net#Socket', instance],
  'dataplane/net/server/http2/tunnel.ts': ['node:net#Socket, node:tls#TLSSocket', instance],
  'dataplane/net/upstream/http1/connection.ts': ['node:net#Socket', instance],
  'dataplane/net/destination/oauth/token-cache.ts': ['fetch', local],
  'dataplane/policy/plugins/guest/serve-plugin.ts': ['fetch', local],
  'dataplane/policy/plugins/host.ts': ['fetch', local],
  'dataplane/net/upstream/cloud/cached.ts': ['fetch', local],
  'dataplane/net/upstream/cloud/index.ts': ['fetch', local],
  'dataplane/backend/mcp/sse/source.ts': ['EventSource', local],
  'dataplane/policy/authorization/rules.ts': ['require', local],
}

describe('connections', () => {
  test('are opened by the files of the table only', () => {
    const sources = listFiles('api/*.ts', 'dataplane/*.ts', 'operator/*.ts').filter((path) => !isTestCode(path))
    expect(sources.length).toBeGreaterThan(500)
    const found = sources.map((path) => [path, findDials(path, readText(path)).join(', ')] as const).filter(([, dials]) => dials !== '')
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(Object.entries(permitted).map(([path, [dials]]) => [path, dials])))
  })

  test('of sockets that files only check are not opened', () => {
    const files = Object.keys(permitted).filter((path) => permitted[path]?.[1] === instance)
    expect(files.filter((path) => /\bnew (?:TLS)?Socket\b|\.connect\(/.test(readText(path)))).toEqual([])
  })

  test.each([
    ["import { connect } from 'node:net'", 'node:net#connect'],
    ["import { connect as open } from 'net'", 'node:net#connect'],
    ["import net from 'node:net'", 'node:net#*'],
    ["import * as net from 'node:net'", 'node:net#*'],
    ["import { Socket } from 'node:net'; new Socket().connect(1)", 'node:net#Socket'],
    ["import { TLSSocket } from 'tls'", 'node:tls#TLSSocket'],
    ["import { get } from 'https'", 'node:https#get'],
    ["import { connect } from 'node:http2'", 'node:http2#connect'],
    ["import { resolve } from 'node:dns/promises'", 'node:dns#resolve'],
    ["import { createSocket } from 'dgram'", 'node:dgram#createSocket'],
    ["export { connect } from 'node:net'", 'node:net#connect'],
    ["export * from 'node:net'", 'node:net#*'],
    ["const { connect } = await import('node:net')", 'node:net#*'],
    ["await import('n' + 'et')", 'import()'],
    ['await import(`node:net`)', 'import()'],
    ["require('net').connect(1)", 'require'],
    ["import { createRequire } from 'node:module'", 'node:module#createRequire'],
    ["process.getBuiltinModule('net')", 'process.getBuiltinModule'],
    ["process['getBuiltinModule']('net')", 'process.getBuiltinModule'],
    ["await fetch('http://x')", 'fetch'],
    ['const open = fetch', 'fetch'],
    ['const all = { fetch }', 'fetch'],
    ['globalThis.fetch(url)', 'fetch'],
    ["globalThis['fetch'](url)", 'fetch'],
    ['const { fetch: open } = globalThis', 'fetch'],
    ['const { getBuiltinModule: load } = process', 'getBuiltinModule'],
    ["new WebSocket('ws://x')", 'WebSocket'],
    ["import { Pool } from 'undici'", 'undici#Pool'],
    ["import { makeClientConstructor } from '@grpc/grpc-js'", '@grpc/grpc-js#makeClientConstructor'],
  ])('are found in %s', (text, dial) => {
    expect(findDials('a.ts', text)).toContain(dial)
  })

  test.each([
    "import type { Socket } from 'node:net'",
    "import { type Socket, isIP } from 'node:net'",
    "import { createServer } from 'node:http'",
    "import type { EventSource } from './source.ts'; export let a: EventSource",
    'cache.fetch()',
    'export const a = { fetch: 1 }',
    'export interface A { fetch(): void }',
  ])('are not found in %s', (text) => {
    expect(findDials('a.ts', text)).toEqual([])
  })
})
