import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { create, toBinary } from '@bufbuild/protobuf'
import { AnySchema } from '@bufbuild/protobuf/wkt'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import { ResourceSchema as DiscoveryResourceSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { ResourceSchema } from '#gen/proto/resource_pb.js'
import { createConfigStore } from '../store.ts'
import { backoffMs } from './backoff.ts'
import { decodeResource } from './decode.ts'
import { toNode } from './node.ts'
import { checkOperatorIdentity } from './server.ts'
import { startConfigStream, type ConfigStreamEvent } from './stream.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe('the backoff of the config stream', () => {
  test('doubles from 10 ms to 15 s, with jitter in the upper half', () => {
    const attempts = [0, 1, 2, 5, 10, 11, 1000]
    expect(attempts.map((attempt) => backoffMs(attempt, () => 0))).toEqual([5, 10, 20, 160, 5120, 7500, 7500])
    expect(attempts.map((attempt) => backoffMs(attempt, () => 0.999_999)).map(Math.round)).toEqual([10, 20, 40, 320, 10_240, 15_000, 15_000])
  })
})

describe('toNode', () => {
  test('names the data plane and sets its role to the safe name of the Gateway', () => {
    expect(toNode({ namespace: 'ns', gateway: 'gw', podName: 'gw-1', podIps: '10.0.0.1,fd00::1', nodeName: 'n1' })).toEqual({
      id: 'proxy~10.0.0.1~gw-1.ns~ns.svc.cluster.local',
      metadata: { NAME: 'gw-1', NAMESPACE: 'ns', INSTANCE_IPS: '10.0.0.1,fd00::1', NODE_NAME: 'n1', GATEWAY_NAME: 'gw', role: 'ns~gw' },
    })
    expect(toNode({ namespace: 'ns', gateway: 'g'.repeat(64) }).metadata?.['role']).toMatch(/^ns~g{50}-[0-9a-f]{12}$/)
  })
})

describe('a resource of the config stream', () => {
  const resource = (name: string, fields: { key?: string; kind?: string; json?: string }, typeUrl = RESOURCE_TYPE) =>
    create(DiscoveryResourceSchema, {
      name,
      version: '1',
      resource: create(AnySchema, { typeUrl, value: toBinary(ResourceSchema, create(ResourceSchema, fields)) }),
    })
  const valid = { key: 'a', kind: 'bind', json: '{"key":"a","port":80}' }

  test('is decoded into a config message', () => {
    expect(decodeResource(resource('bind/a', valid), RESOURCE_TYPE, undefined)).toEqual({ message: { kind: 'bind', message: { key: 'a', port: 80 } } })
  })

  test.each<[sentence: string, received: ReturnType<typeof resource>, typeUrl: string, error: string]>([
    [
      'without a kind',
      resource('a', valid),
      RESOURCE_TYPE,
      'name: must be <kind>/<key> with a kind of bind, listener, route, tcpRoute, backend, policy, secret, service',
    ],
    [
      'with a kind that is a property of Object.prototype',
      resource('constructor/a', valid),
      RESOURCE_TYPE,
      'name: must be <kind>/<key> with a kind of bind, listener, route, tcpRoute, backend, policy, secret, service',
    ],
    ['in a response of the other type', resource('bind/a', valid), ADDRESS_TYPE, `type_url: bind travels as ${RESOURCE_TYPE}`],
    ['packed as the other type', resource('bind/a', valid, ADDRESS_TYPE), RESOURCE_TYPE, `type_url: bind travels as ${RESOURCE_TYPE}`],
    ['whose key differs from its name', resource('bind/b', valid), RESOURCE_TYPE, "kind, key: bind/a does not equal the resource's name"],
    [
      'whose message has a different key',
      resource('bind/a', { ...valid, json: '{"key":"b","port":80}' }),
      RESOURCE_TYPE,
      "key: b does not equal the resource's key",
    ],
    ['that is not JSON (without quoting it)', resource('bind/a', { ...valid, json: 'secret' }), RESOURCE_TYPE, 'json: is not JSON'],
    [
      'that does not fit its schema',
      resource('bind/a', { ...valid, json: '{"key":"a","port":"x","y":1}' }),
      RESOURCE_TYPE,
      'y: unknown field; known here: key, port, addresses; port: must be an integer, is "x"',
    ],
    [
      'that sets __proto__',
      resource('bind/a', { ...valid, json: '{"key":"a","port":1,"__proto__":{"x":1}}' }),
      RESOURCE_TYPE,
      '__proto__: unknown field; known here: key, port, addresses',
    ],
    [
      'with a command of an MCP server',
      resource('backend/a/b', { key: 'a/b', kind: 'backend', json: '{"key":"a/b","mcp":{"targets":[{"name":"c","command":["x"]}]}}' }),
      RESOURCE_TYPE,
      'mcp.targets: command is for config files',
    ],
    [
      'with key material in the wrong field (without repeating it)',
      resource('secret/a', { key: 'a', kind: 'secret', json: '{"key":"a","type":"s3cret","data":{"x":12345}}' }),
      RESOURCE_TYPE,
      'type: must be one of tls, ca, opaque, is string; data.x: must be a string, is number',
    ],
  ])('%s is rejected', (_, received, typeUrl, error) => {
    expect(decodeResource(received, typeUrl, undefined)).toEqual({ rejected: { key: received.name, error } })
  })

  test('with truncated bytes is rejected', () => {
    const cut = create(DiscoveryResourceSchema, { name: 'bind/a', resource: create(AnySchema, { typeUrl: RESOURCE_TYPE, value: new Uint8Array([10, 200]) }) })
    expect(decodeResource(cut, RESOURCE_TYPE, undefined)).toEqual({ rejected: { key: 'bind/a', error: expect.any(String) } })
  })

  test('is filled with the defaults of its schema', () => {
    const json = '{"key":"a","listeners":[],"route":{"kind":"HTTPRoute","namespace":"n","name":"a","ruleIndex":0},"backends":[{"ref":{"address":"a:1"}}]}'
    expect(decodeResource(resource('route/a', { key: 'a', kind: 'route', json }), RESOURCE_TYPE, undefined)).toMatchObject({
      message: { message: { backends: [{ weight: 1 }] } },
    })
  })
})

describe('the identity check of the operator certificate', () => {
  test.each([
    ['accepts', 'the full host name', 'proxy.infra.svc.corp.example', 'proxy.infra.svc.corp.example'],
    ['accepts', 'the host name without the cluster domain', 'proxy.infra.svc.corp.example', 'proxy.infra.svc'],
    ['rejects', 'the name of another Service', 'proxy.infra.svc.corp.example', 'other.infra.svc'],
    ['rejects', 'a host name without svc', 'proxy.infra.svc.corp.example', 'proxy.infra'],
    ['rejects', 'a short name for a host outside of the cluster', 'xds.example', 'proxy.infra.svc'],
  ])('%s %s', (verdict, _, host, name) => {
    const certificate = { subject: { CN: '' }, subjectaltname: `DNS:${name}` } as unknown as Parameters<typeof checkOperatorIdentity>[1]
    expect(checkOperatorIdentity(host, certificate) === undefined).toBe(verdict === 'accepts')
  })
})

describe('the config stream', () => {
  test.each(['localhost:9978', 'grpc://a:1', 'http://', 'http://a/path', ''])('rejects the address %j and names the setting', (address) => {
    const start = (): unknown => startConfigStream({ address, node: { namespace: 'n', gateway: 'g' }, store: createConfigStore() })
    expect(start).toThrow(`XDS_ADDRESS: ${JSON.stringify(address)} is not usable; write http://host:port or https://host:port`)
  })

  test('reconnects with growing delays while the server does not answer, and stops when it is closed', async () => {
    const events: ConfigStreamEvent[] = []
    const delays: number[] = []
    // Port 1 (tcpmux) is closed on any machine that runs tests.
    const stream = startConfigStream({
      address: 'http://127.0.0.1:1',
      node: { namespace: 'n', gateway: 'g' },
      store: createConfigStore(),
      random: () => 0,
      onEvent: (event) => events.push(event),
      wait: async (delayMs) => {
        delays.push(delayMs)
        if (delays.length === 4) void stream.close()
      },
    })
    while (delays.length < 4) await new Promise((resolve) => setTimeout(resolve, 2))
    await stream.close()
    expect(delays).toEqual([5, 10, 20, 40])
    expect(events[0]).toMatchObject({ type: 'disconnected', retryMs: 5, cause: expect.stringContaining('ECONNREFUSED') })
    expect(stream.isConnected()).toBe(false)
  })

  test('does not connect if its token file is missing, and reports the file name', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'stream-'))
    closers.push(() => rm(directory, { recursive: true }))
    const causes: string[] = []
    const tokenFile = join(directory, 'token')
    const stream = startConfigStream({
      address: 'http://127.0.0.1:1',
      node: { namespace: 'n', gateway: 'g' },
      store: createConfigStore(),
      tokenFile,
      onEvent: (event) => event.type === 'disconnected' && causes.push(event.cause),
    })
    closers.push(() => stream.close())
    while (causes.length === 0) await new Promise((resolve) => setTimeout(resolve, 2))
    expect(causes[0]).toContain(`ENOENT: no such file or directory, open '${tokenFile}'`)
  })
})
