import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http2'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { findFreePort, findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'

/** A running service for callouts. */
export interface Counterpart {
  readonly port: number
  stop(): Promise<unknown>
}

const binary = (name: string): string => fileURLToPath(new URL(`../../../.tools/callouts/${name}`, import.meta.url))

async function portOf(program: Program): Promise<Counterpart> {
  const line = await program.waitForLine(/^listening \d+$/, 120_000)
  return { port: Number(line.split(' ')[1]), stop: () => program.stop() }
}

/** Starts an ext_authz server on go-control-plane's types that decides with OPA. */
export const startAuthz = (): Promise<Counterpart> =>
  portOf(startProgram({ name: 'authz', command: binary('authz'), args: [fileURLToPath(new URL('policy.rego', import.meta.url))] }))

/** Starts an ext_proc server on go-control-plane's types. */
export const startExtProc = (): Promise<Counterpart> => portOf(startProgram({ name: 'extproc', command: binary('extproc'), args: [] }))

/** A rate limit quota server with its output: a line for each report. */
export interface QuotaCounterpart extends Counterpart {
  readonly lines: Program['lines']
}

/** Starts a rate limit quota server on go-control-plane's types. `port` 0: a free one. */
export async function startQuota(port = 0): Promise<QuotaCounterpart> {
  const program = startProgram({ name: 'quota', command: binary('quota'), args: [String(port)] })
  return { ...(await portOf(program)), lines: program.lines }
}

/** Starts Envoy's rate limit service with its own Redis. */
export async function startRateLimit(directory: string, config: object): Promise<Counterpart> {
  const [redisPort = 0, port = 0, httpPort = 0, debugPort = 0] = await findFreePorts(4)
  const redis = startProgram({
    name: 'redis',
    command: 'redis-server',
    args: ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--dir', directory],
  })
  await redis.waitForLine(/Ready to accept connections/, 120_000)
  await mkdir(join(directory, 'limits/config'), { recursive: true })
  await writeFile(join(directory, 'limits/config/shop.yaml'), stringify(config))
  const env = {
    USE_STATSD: 'false',
    LOG_LEVEL: 'warn',
    BACKEND_TYPE: 'redis',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${redisPort}`,
    RUNTIME_ROOT: directory,
    RUNTIME_SUBDIRECTORY: 'limits',
    RUNTIME_WATCH_ROOT: 'false',
    HOST: '127.0.0.1',
    PORT: String(httpPort),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(port),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(debugPort),
  }
  const service = startProgram({ name: 'ratelimit', command: binary('ratelimit'), args: [], env })
  await waitUntil(
    'the rate limit service is healthy',
    async () => (await fetch(`http://127.0.0.1:${httpPort}/healthcheck`).catch(() => undefined))?.ok === true,
    120_000,
  )
  return { port, stop: () => Promise.all([service.stop(), redis.stop()]) }
}

/** Starts nginx with basic authentication: 401 with a challenge, or 200 with the user. */
export async function startNginxAuth(directory: string): Promise<Counterpart> {
  const port = await findFreePort()
  const hash = execFileSync('openssl', ['passwd', '-apr1', 'open sesame']).toString().trim()
  await writeFile(join(directory, 'users'), `anna:${hash}\n`)
  const config = `
    daemon off; user root; worker_processes 1; pid ${directory}/nginx.pid; error_log stderr;
    events { }
    http {
      access_log off;
      client_body_temp_path ${directory}/t1; proxy_temp_path ${directory}/t2; fastcgi_temp_path ${directory}/t3; uwsgi_temp_path ${directory}/t4; scgi_temp_path ${directory}/t5;
      server {
        listen 127.0.0.1:${port};
        auth_basic "the shop"; auth_basic_user_file ${directory}/users;
        add_header x-user $remote_user; add_header x-asked "$request_method $request_uri";
        location / { root ${directory}; try_files /users =404; }
      }
    }`
  await writeFile(join(directory, 'nginx.conf'), config)
  const nginx = startProgram({ name: 'nginx', command: 'nginx', args: ['-p', directory, '-c', join(directory, 'nginx.conf')] })
  await waitUntil('nginx responds', async () => (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) !== undefined)
  return { port, stop: () => nginx.stop() }
}

/** Accepts connections and never sends a byte, like a service behind a network that drops packets. */
export const startSilent = (): Promise<Counterpart> => startTcp(() => undefined)

/** Closes each connection when it receives the first bytes. */
export const startDropping = (): Promise<Counterpart> => startTcp((socket) => void socket.once('data', () => socket.destroy()))

/** Responds in another protocol. */
export const startMalformed = (): Promise<Counterpart> => startTcp((socket) => void socket.once('data', () => socket.end('220 mail.example ESMTP\r\n')))

/** Accepts HTTP/2 calls and never responds. */
export async function startHanging(): Promise<Counterpart> {
  const server = createServer()
  server.on('stream', (stream) => stream.on('error', () => undefined))
  const close = await track(server)
  return { port: (server.address() as AddressInfo).port, stop: close }
}

async function startTcp(onSocket: (socket: Socket) => void): Promise<Counterpart> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    onSocket(socket)
  })
  const close = await track(server)
  return { port: (server.address() as AddressInfo).port, stop: close }
}

async function track(server: Server | ReturnType<typeof createServer>): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  return () => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => void server.close(() => resolve()))
  }
}
