import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readImageRun } from './image.ts'
import { lastError } from './operator.ts'
import { findFreePorts } from './ports.ts'
import { startProgram, tailOf, type Program } from './program.ts'
import { isTrueWithin } from '../wait.ts'

/** Path of the program. */
export const DATAPLANE_MAIN = fileURLToPath(new URL('../../../dataplane/main.ts', import.meta.url))

/** Source of the config: a file (`-f`), or the operator's config stream for one Gateway. */
type DataplaneConfig = { readonly file: string } | { readonly address: string; readonly namespace: string; readonly gateway: string }

export interface DataplaneOptions {
  readonly config: DataplaneConfig
  /** A file with the section `config`, besides the config stream. */
  readonly settingsFile?: string
  /** Default: free ports. */
  readonly ports?: ManagementPorts
  /** PROXY_LOG; default `info`. */
  readonly log?: string
  readonly env?: Readonly<Record<string, string>>
  /** A bundle to run instead of the sources. */
  readonly entry?: string
  /** Options for Node. */
  readonly nodeArgs?: readonly string[]
  /** RLIMIT_NOFILE of the process. */
  readonly openFiles?: number
  /** CPUs to pin the process to, in the syntax of taskset. */
  readonly cpus?: string
  /** A network namespace to run in, with its address seen from this machine. */
  readonly network?: { readonly name: string; readonly address: string }
  readonly timeoutMs?: number
}

/** Ports of the admin, metrics and readiness servers. */
export interface ManagementPorts {
  readonly admin: number
  readonly stats: number
  readonly readiness: number
}

/** A running data plane. */
export interface Dataplane {
  readonly program: Program
  readonly ports: ManagementPorts
  /** GET on the admin port. */
  admin(path: string): Promise<Response>
  metrics(): Promise<string>
  stop(graceMs?: number): Promise<void>
}

/** Starts a data plane and waits until it is ready. Rejects with the data plane's error message if it exits before. */
export async function startDataplane(options: DataplaneOptions): Promise<Dataplane> {
  const [admin = 0, stats = 0, readiness = 0] = options.ports === undefined ? await findFreePorts(3) : []
  const ports = options.ports ?? { admin, stats, readiness }
  const { config, network } = options
  const host = network?.address ?? '127.0.0.1'
  const prefix = [
    ...(network === undefined ? [] : ['ip', 'netns', 'exec', network.name]),
    ...(options.openFiles === undefined ? [] : ['prlimit', `--nofile=${options.openFiles}`]),
    ...(options.cpus === undefined ? [] : ['taskset', '-c', options.cpus]),
  ]
  const image = readImageRun(new URL('../../../dataplane/Dockerfile', import.meta.url))
  const file = 'file' in config ? config.file : options.settingsFile
  const args = [...image.nodeArgs, ...(options.nodeArgs ?? []), options.entry ?? DATAPLANE_MAIN, ...(file === undefined ? [] : ['-f', file])]
  const [command = process.execPath, ...rest] = [...prefix, process.execPath, ...args]
  const program = startProgram({
    name: 'dataplane',
    command,
    args: rest,
    env: {
      ...image.env,
      ADMIN_ADDR: `${host}:${ports.admin}`,
      STATS_ADDR: `${host}:${ports.stats}`,
      READINESS_ADDR: `${host}:${ports.readiness}`,
      PROXY_LOG: options.log ?? 'info',
      WORKERS: workersOf(config),
      ...('file' in config ? { XDS_ADDRESS: undefined } : { XDS_ADDRESS: `http://${config.address}`, NAMESPACE: config.namespace, GATEWAY: config.gateway }),
      ...options.env,
    },
  })
  const isReady = async () => program.hasExited() || (await fetch(`http://${host}:${ports.readiness}/healthz/ready`)).ok
  const hasStarted = await isTrueWithin(options.timeoutMs ?? 60_000, isReady)
  if (program.hasExited()) throw new Error(lastError(program) ?? 'the data plane exited at start')
  if (!hasStarted) {
    await program.stop()
    throw new Error(`the data plane did not become ready in time\n${tailOf(program.lines)}`)
  }
  return {
    program,
    ports,
    admin: (path) => fetch(`http://${host}:${ports.admin}${path}`),
    metrics: async () => (await fetch(`http://${host}:${ports.stats}/metrics`)).text(),
    stop: async (graceMs) => void (await program.stop(graceMs)),
  }
}

/** One worker, so that tests and benchmarks do not depend on the machine, unless the environment or the config file has another number. */
function workersOf(config: DataplaneConfig): string | undefined {
  const { WORKERS = '1' } = process.env
  try {
    return 'file' in config && process.env['WORKERS'] === undefined && /\bworkers["']?\s*:/.test(readFileSync(config.file, 'utf8')) ? undefined : WORKERS
  } catch {
    return WORKERS
  }
}
