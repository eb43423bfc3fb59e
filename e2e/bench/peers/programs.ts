import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import packageJson from '../../../package.json' with { type: 'json' }
import { findFreePort, findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { start, type Bench } from '../bench.ts'
import { startLlmPeer, startOurs } from '../llm-proxies.ts'
import { CERTIFICATE_FILE, KEY_FILE, writeCertificate } from '../nginx.ts'
import { agentgatewayConfig, bifrostConfig, envoyConfig, haproxyConfig, type PeerSpec } from './config.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)

/** A running program. A field that is absent means that the program does not do that. */
export interface Endpoints {
  readonly version: string
  /** Command line, without temporary paths. */
  readonly command: string
  readonly http?: { readonly pid: number; readonly port: number; readonly http2Port: number; readonly tlsPort: number }
  /** Chat completions. `isPlain`: forwarded as bytes, without reading usage. */
  readonly chat?: {
    readonly pid: number
    readonly port: number
    readonly headers: Readonly<Record<string, string>>
    readonly isPlain: boolean
    readonly model?: string
    /** Default 32. */
    readonly connections?: number
  }
  stop(): Promise<void>
}

/** A program to compare with. `begin` rejects with the reason if this machine cannot have it. */
export interface Peer {
  readonly name: string
  begin(bench: Bench): Promise<Endpoints>
}

/** Path of an installed program or file. */
export const install = async (name: string): Promise<string> => (await run(join(root, 'e2e/bench/peers/install'), [name], { timeout: 900_000 })).stdout.trim()

/** First version number that a command prints. */
async function versionOf(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run(command, [...args])
  return /\d+\.\d+(\.\d+)?/.exec(stdout + stderr)?.[0] ?? 'unknown'
}

interface Prepared {
  readonly directory: string
  readonly spec: PeerSpec
}

async function prepare(bench: Bench, name: string): Promise<Prepared> {
  const directory = join(bench.directory, `peer-${name}`)
  mkdirSync(directory, { recursive: true })
  writeCertificate(directory)
  const [port = 0, http2Port = 0, tlsPort = 0] = await findFreePorts(3)
  const [certificate, key] = [join(directory, CERTIFICATE_FILE), join(directory, KEY_FILE)]
  return { directory, spec: { port, http2Port, tlsPort, upstreamPort: bench.upstreamPort, certificate, key } }
}

/** Starts a program on the proxy's CPU and waits until it responds. */
export async function launch(bench: Bench, name: string, command: string, args: readonly string[], port: number): Promise<Program> {
  const program = startProgram({ name, command: 'taskset', args: ['-c', String(bench.proxyCpu), command, ...args] })
  const isServing = async (): Promise<boolean> => {
    if (program.hasExited()) throw new Error(`${name} exited`)
    return (await fetch(`http://127.0.0.1:${port}/`)).status < 600
  }
  await waitUntil(name, isServing, 30_000).catch((error: unknown) => {
    throw new Error(`${name} does not start: ${program.lines.at(-1)?.text ?? ''}`, { cause: error })
  })
  return program
}

/** A proxy whose chat completions are plain forwarding. */
function plainProxy(version: string, command: string, program: Program, { port, http2Port, tlsPort }: PeerSpec): Endpoints {
  const { pid } = program
  return {
    version,
    command,
    http: { pid, port, http2Port, tlsPort },
    chat: { pid, port, headers: {}, isPlain: true },
    stop: async () => void (await program.stop(1000)),
  }
}

const ours: Peer = {
  name: packageJson.name,
  async begin(bench) {
    const proxy = await start(bench, 'ours', { routes: 10, isTls: true })
    const llm = await startOurs(bench, 'peers', bench.upstreamPort, false)
    const { port, http2Port, tlsPort = 0 } = proxy.spec
    return {
      version: packageJson.version,
      command: `node ${process.version} dataplane/main.js -f config.yaml`,
      http: { pid: proxy.pid, port, http2Port, tlsPort },
      chat: { pid: llm.pid, port: llm.ports.chat, headers: {}, isPlain: false },
      stop: async () => void (await Promise.all([proxy.stop(), llm.stop()])),
    }
  },
}

const nginx: Peer = {
  name: 'nginx',
  async begin(bench) {
    const proxy = await start(bench, 'nginx', { routes: 10, isTls: true })
    const { port, http2Port, tlsPort = 0 } = proxy.spec
    return {
      version: await versionOf('nginx', '-v'),
      command: 'nginx -c nginx.conf (worker_processes 1)',
      http: { pid: proxy.pid, port, http2Port, tlsPort },
      chat: { pid: proxy.pid, port, headers: {}, isPlain: true },
      stop: () => proxy.stop(),
    }
  },
}

const haproxy: Peer = {
  name: 'HAProxy',
  async begin(bench) {
    const command = await install('haproxy')
    const { directory, spec } = await prepare(bench, 'haproxy')
    const pem = join(directory, 'bench.pem')
    writeFileSync(pem, readFileSync(spec.certificate, 'utf8') + readFileSync(spec.key, 'utf8'), { mode: 0o600 })
    const file = join(directory, 'haproxy.cfg')
    writeFileSync(file, haproxyConfig(spec, pem))
    const program = await launch(bench, 'haproxy', command, ['-db', '-f', file], spec.port)
    return plainProxy(await versionOf(command, '-v'), 'haproxy -db -f haproxy.cfg (nbthread 1)', program, spec)
  },
}

const envoy: Peer = {
  name: 'Envoy',
  async begin(bench) {
    const command = await install('envoy')
    const { directory, spec } = await prepare(bench, 'envoy')
    const file = join(directory, 'envoy.json')
    writeFileSync(file, JSON.stringify(envoyConfig(spec)))
    const options = ['--concurrency', '1', '--log-level', 'error', '--disable-hot-restart']
    const program = await launch(bench, 'envoy', command, ['-c', file, ...options], spec.port)
    const text = (await run(command, ['--version'])).stdout
    const version = /\/(\d+\.\d+\.\d+)\//.exec(text)?.[1] ?? 'unknown'
    return plainProxy(version, `envoy -c envoy.json ${options.join(' ')}`, program, spec)
  },
}

const agentgateway: Peer = {
  name: 'agentgateway',
  async begin(bench) {
    const command = process.env['AGENTGATEWAY']
    if (command === undefined || !existsSync(command))
      throw new Error('it is not on crates.io; build it from its repository and set AGENTGATEWAY to the path of the program')
    const { directory, spec } = await prepare(bench, 'agentgateway')
    const [chat = 0, ...management] = await findFreePorts(4)
    const file = join(directory, 'config.json')
    writeFileSync(file, JSON.stringify(agentgatewayConfig(spec, chat, management)))
    const program = await launch(bench, 'agentgateway', command, ['-f', file], spec.port)
    const { port, tlsPort } = spec
    return {
      version: await versionOf(command, '--version'),
      command: 'agentgateway -f config.json (workerThreads 1)',
      http: { pid: program.pid, port, http2Port: port, tlsPort },
      chat: { pid: program.pid, port: chat, headers: {}, isPlain: false },
      stop: async () => void (await program.stop(1000)),
    }
  },
}

const bifrost: Peer = {
  name: 'Bifrost',
  async begin(bench) {
    const command = process.env['BIFROST'] ?? (await install('bifrost'))
    const { directory } = await prepare(bench, 'bifrost')
    writeFileSync(join(directory, 'config.json'), JSON.stringify(bifrostConfig(bench.upstreamPort)))
    const port = await findFreePort()
    const program = await launch(bench, 'bifrost', command, ['-app-dir', directory, '-host', '127.0.0.1', '-port', String(port), '-log-level', 'error'], port)
    return {
      version: '1.3.0',
      command: 'bifrost-http -app-dir DIR -log-level error',
      chat: { pid: program.pid, port, headers: {}, isPlain: false, model: 'openai/gpt-4o' },
      stop: async () => void (await program.stop(1000)),
    }
  },
}

const llmPeer = (name: string, id: 'portkey' | 'litellm', version: string, command: string, connections?: number): Peer => ({
  name,
  async begin(bench) {
    const { pid, port, headers, stop } = await startLlmPeer(bench, id)
    return { version, command, chat: { pid, port, headers, isPlain: false, ...(connections === undefined ? {} : { connections }) }, stop }
  },
})

/** Every program, ours first. */
export const peers: readonly Peer[] = [
  ours,
  nginx,
  haproxy,
  envoy,
  agentgateway,
  bifrost,
  llmPeer('Portkey', 'portkey', '1.15.2', 'node build/start-server.js --headless'),
  llmPeer('LiteLLM', 'litellm', '1.106.2', 'litellm --config config.yaml --num_workers 1', 8),
]
