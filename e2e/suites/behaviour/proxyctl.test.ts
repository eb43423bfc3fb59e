import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { startEcho } from '../../harness/upstream/echo.ts'
import { startOperator, type Operator } from '../../harness/program/operator.ts'
import { findFreePort } from '../../harness/program/ports.ts'

const PROXYCTL = fileURLToPath(new URL('../../../operator/proxyctl/main.ts', import.meta.url))

/** Runs proxyctl without a terminal. */
function proxyctl(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  // Do not pass on settings of the test runner.
  const { NODE_OPTIONS: _, FORCE_COLOR: __, NO_COLOR: ___, ...env } = process.env
  return new Promise((resolve) => {
    execFile(process.execPath, [PROXYCTL, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    )
  })
}

const manifests = (port: number, upstream: number, timeout = '10s') => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: proxy
  listeners: [{name: http, port: ${port}, protocol: HTTP}]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: up, namespace: default}
spec:
  static: {host: 127.0.0.1, port: ${upstream}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs: [{group: proxy.dev, kind: ProxyBackend, name: up}]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: gateway-policy, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  traffic:
    timeouts: {request: 5s}
    authorization:
      policy: {matchExpressions: ['request.headers["x-user"] == "bob"']}
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: of-route, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  traffic:
    timeouts: {request: ${timeout}}
`

describe('proxyctl on a standalone gateway', () => {
  let directory: string
  let operator: Operator
  let dataplane: Dataplane
  let stopEcho: () => Promise<void>
  let port: number
  let upstream: number
  let admin: string[]
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'proxyctl-'))
    port = await findFreePort()
    const echo = await startEcho({ name: 'up' })
    upstream = echo.port
    stopEcho = () => echo.close()
    await writeFile(join(directory, 'a.yaml'), manifests(port, upstream))
    operator = await startOperator({ directory })
    dataplane = await startDataplane({ config: { address: operator.address, namespace: 'default', gateway: 'gw' } })
    admin = ['--admin', `127.0.0.1:${dataplane.ports.admin}`]
  })
  afterAll(async () => {
    await dataplane?.stop()
    await operator?.stop()
    await stopEcho?.()
    await rm(directory, { recursive: true, force: true })
  })

  test('explain names the policy that a field comes from and what it overrides', async () => {
    const { code, stdout, stderr } = await proxyctl('explain', 'default/web', ...admin)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/timeouts +ProxyPolicy default\/of-route on HTTPRoute default\/web +\{"request":"10s"\}/)
    expect(stdout).toMatch(/overrides ProxyPolicy default\/gateway-policy on Gateway default\/gw/)
  })

  test('explain reports a route that does not exist', async () => {
    expect(await proxyctl('explain', 'default/nothing', ...admin)).toMatchObject({ code: 1, stderr: expect.stringContaining('default/nothing') })
  })

  test('trace sends a request and prints each step', async () => {
    const { code, stdout } = await proxyctl('trace', `http://127.0.0.1:${port}/shop`, '--header', 'x-user: bob', ...admin)
    expect(code).toBe(0)
    expect(stdout).toMatch(/policy +authorization\n.*expression +request.headers\["x-user"\] == "bob" +result=true\n/)
    expect(stdout).toMatch(new RegExp(`upstream +127.0.0.1:${upstream} +backend=default/up attempt=0 picked=the only endpoint status=200`))
    expect(stdout).not.toContain('x-proxy-trace-id')
  })

  test('trace shows the policy that rejected the request', async () => {
    const { stdout } = await proxyctl('trace', `http://127.0.0.1:${port}/shop`, '-o', 'json', ...admin)
    const report = JSON.parse(stdout) as { status: number; steps: { kind: string; name: string; detail?: object }[] }
    expect(report.status).toBe(403)
    expect(report.steps.find(({ kind }) => kind === 'policy')).toMatchObject({ name: 'authorization', detail: { refused: 'AUTHORIZATION' } })
  })

  test('trace waits for a request of another client', async () => {
    const waiting = proxyctl('trace', '--path', '/mine', ...admin)
    let isDone = false
    void waiting.then(() => (isDone = true))
    // Send requests until one was traced, because the test cannot see when the program starts to wait.
    while (!isDone) {
      await fetch(`http://127.0.0.1:${port}/mine`).then((response) => response.arrayBuffer())
      await sleep(20)
    }
    expect((await waiting).stdout).toMatch(/^GET 127\.0\.0\.1:\d+\/mine\n/)
  })

  test('trace without a request exits with 1 and reports how long it waited', async () => {
    expect(await proxyctl('trace', '--path', '/never', '--timeout', '100ms', ...admin)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('within 100ms'),
    })
  })

  test('diff compares the running config with the manifests', async () => {
    const dumped = await proxyctl('config', 'dump', ...admin)
    expect(JSON.parse(dumped.stdout)).toHaveProperty('routes')
    const same = await proxyctl('config', 'diff', directory, ...admin)
    expect(same).toMatchObject({ code: 0, stdout: 'no difference\n' })
    const other = await mkdtemp(join(tmpdir(), 'proxyctl-other-'))
    await writeFile(join(other, 'a.yaml'), manifests(port, upstream, '11s'))
    const different = await proxyctl('config', 'diff', other, ...admin)
    await rm(other, { recursive: true })
    expect(different.code).toBe(1)
    expect(different.stdout).toMatch(/^policies \S*of-route\S*\n- .*11s.*\n\+ .*10s.*\n$/)
  })

  test('log level shows and sets the level', async () => {
    expect((await proxyctl('log', 'level', ...admin)).stdout).toMatch(/^\w/)
    expect(await proxyctl('log', 'level', 'debug', ...admin)).toMatchObject({ code: 0, stdout: 'debug\n' })
    expect(await proxyctl('log', 'level', 'loud', ...admin)).toMatchObject({ code: 1, stderr: expect.stringContaining('loud') })
    await proxyctl('log', 'level', 'info', ...admin)
  })
})
