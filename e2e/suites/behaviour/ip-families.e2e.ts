import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'

const MAIN = resolve(import.meta.dirname, '../../../dataplane/main.ts')
const FILE = 'binds: [{ port: 8080, addresses: [], listeners: [{ routes: [{ policies: { directResponse: { status: 200, body: routed } } }] }] }]\n'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ip-families-'))
  await writeFile(join(directory, 'gateway.yaml'), FILE)
})
afterAll(() => rm(directory, { recursive: true }))

/** Responses of a data plane in a network namespace of its own (root), whose loopback interface `prepare` changes. */
async function responsesIn(prepare: string, host: string): Promise<string[]> {
  const script = `
    ip link set lo up
    ${prepare}
    "$NODE" "$MAIN" -f gateway.yaml >log 2>&1 &
    server=$!
    get() { curl -sg --max-time 5 "http://${host}:$1"; }
    for attempt in $(seq 300); do [ "$(get 15021/healthz/ready)" = ready ] && break; kill -0 $server || break; sleep 0.2; done
    get 15021/healthz/ready; echo; get 15022/healthz/live; echo; get 15020/metrics | grep -c '^proxy_build_info'; get 8080/; echo
    kill $server; wait $server; true`
  const env = { ...process.env, NODE: process.execPath, MAIN, LIVENESS_ADDR: ':15022' }
  const { stdout } = await promisify(execFile)('unshare', ['--net', 'sh', '-c', script], { cwd: directory, env, timeout: 120_000 })
  return stdout.trim().split('\n')
}

test.each([
  ['has IPv6 addresses only', 'ip address del 127.0.0.1/8 dev lo', '[::1]'],
  ['has no IPv6', 'for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$file; done', '127.0.0.1'],
  ['has both families, by IPv6', ':', '[::1]'],
])(
  'all ports of a data plane can be reached where the machine %s',
  async (_, prepare, host) => {
    expect(await responsesIn(prepare, host)).toEqual(['ready', 'live', '1', 'routed'])
  },
  150_000,
)
