import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import { parseArgs, parseEnv } from 'node:util'
import type { Bind } from '#gen/config/types.ts'
import { updateConsole } from '../../images/console.ts'
import { describePlaces } from '../../dataplane/config/file/addresses.ts'
import { ConfigFileError } from '../../dataplane/config/file/problem.ts'
import { readConfigFile } from '../../dataplane/config/file/read.ts'
import { startDataplane, type Dataplane, type ManagementPorts } from './program/dataplane.ts'
import { readExample, startUpstream, writeCertificates, type Example, type Running } from './example/example.ts'
import { lastError, startOperator, type GatewaySummary, type Operator, type OperatorEvent } from './program/operator.ts'
import { findFreePort, isPortFree } from './program/ports.ts'
import type { Program } from './program/program.ts'
import { describeCommands, describeEvent, describeGateway, describeManagement, describeUpstream } from './standalone-text.ts'

/** An error that the user can correct; only its message is printed. */
class StartError extends Error {}

const USAGE = 'usage: node e2e/harness/standalone.ts DIRECTORY | --config FILE'
const CONSOLE = resolve(import.meta.dirname, '../../dist/console')
const log = (text: string) => void process.stdout.write(`${text}\n`)

/** Stops the running programs and upstreams, in this order. */
const stops: (() => Promise<void>)[] = []
let isStopping = false

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options: { config: { type: 'string' } }, allowPositionals: true })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stopAll(0))
  // The data plane reads the console when a browser requests it.
  void updateConsole(CONSOLE).catch((error: Error) => log(`error: the console cannot be built: ${error.message}`))
  if (values.config !== undefined) return runConfig(resolve(values.config))
  if (positionals[0] === undefined) throw new StartError(USAGE)
  return runDirectory(resolve(positionals[0]))
}

async function runDirectory(directory: string): Promise<void> {
  await requireDirectory(directory)
  const example = await prepare(directory)
  log(`reading ${shorten(directory)}; edits are picked up while this runs`)
  const operator = await startOperator({ directory }).catch((error: Error) => {
    throw new StartError(error.message)
  })
  stops.unshift(() => operator.stop())
  watch(operator.program, 'the operator')
  const reportEvent = (event: OperatorEvent): void => {
    const text = describeEvent(event, shorten(directory))
    if (text !== undefined) log(text)
  }
  for (const event of operator.events) reportEvent(event)
  if (operator.gateways().length === 0) throw new StartError(`${shorten(directory)} holds no Gateway of GatewayClass "proxy" that can be used`)
  operator.onEvent(reportEvent)

  const dataplanes = new Map<string, Dataplane>()
  for (const gateway of operator.gateways()) await addGateway(operator, gateway, dataplanes)
  announce(example, directory)
  followGateways(operator, dataplanes)
}

async function runConfig(file: string): Promise<void> {
  if (!existsSync(file)) throw new StartError(`no such file: ${shorten(file)}`)
  if ((await stat(file)).isDirectory()) throw new StartError(`${shorten(file)} is a directory; run it with DIR=${shorten(file)}`)
  const directory = dirname(file)
  const example = await prepare(directory)
  const binds = await readBinds(file)
  if (binds.length === 0) throw new StartError(`${shorten(file)} has no port to listen on; add models, mcp or binds (docs/guide/config-file.md)`)
  for (const { port } of binds) await requireFreePort(port, `a bind of ${shorten(file)}`)
  log(`reading ${shorten(file)}; edits are picked up while this runs`)
  const dataplane = await startOurDataplane({ file })
  for (const place of binds.flatMap(describePlaces)) log(`listening  ${place}`)
  log(describeManagement(dataplane.ports))
  announce(example, directory)
}

/** Binds of a config file, those of its short forms included. Rejects with all problems of the file. */
async function readBinds(file: string): Promise<Bind[]> {
  const { messages } = await readConfigFile(shorten(file)).catch((error: Error) => {
    throw error instanceof ConfigFileError ? new StartError(error.problems.join('\nerror: ')) : error
  })
  return messages.flatMap(({ kind, message }) => (kind === 'bind' && message !== undefined ? [message as Bind] : []))
}

/** Generates the certificates and starts the upstreams of the directory's `run.ts`. */
async function prepare(directory: string): Promise<Example> {
  const example = await readExample(directory)
  await writeCertificates(directory, example.certificates).catch((error: Error) => {
    throw new StartError(`cannot write certificates into ${shorten(directory)}/generated: ${error.message}`)
  })
  for (const spec of example.upstreams ?? []) {
    await requireFreePort(spec.port, `the upstream ${spec.name}`)
    const upstream: Running = await startUpstream(spec, directory)
    // Stop upstreams last: requests in flight need them.
    stops.push(() => upstream.close())
    log(describeUpstream(spec))
  }
  return example
}

async function addGateway(operator: Operator, gateway: GatewaySummary, dataplanes: Map<string, Dataplane>): Promise<void> {
  for (const port of new Set(gateway.listeners.map((listener) => listener.port))) {
    const names = gateway.listeners.filter((listener) => listener.port === port).map((listener) => listener.name)
    await requireFreePort(port, `listener ${names.join(', ')} of Gateway ${gateway.namespace}/${gateway.name}`)
  }
  const dataplane = await startOurDataplane({ address: operator.address, namespace: gateway.namespace, gateway: gateway.name }, gateway.settings)
  dataplanes.set(keyOf(gateway), dataplane)
  settingsInForce.set(keyOf(gateway), gateway.settings?.version)
  log(describeGateway(gateway))
  log(describeManagement(dataplane.ports))
}

/** Starts a data plane for each new Gateway and stops those of deleted Gateways. */
function followGateways(operator: Operator, dataplanes: Map<string, Dataplane>): void {
  let previous: Promise<void> = Promise.resolve()
  operator.onEvent((event) => {
    if (event.event !== 'config') return
    previous = previous.then(async () => {
      const wanted = new Set(event.gateways.map(keyOf))
      for (const [key, dataplane] of dataplanes) {
        if (wanted.has(key)) continue
        dataplanes.delete(key)
        managementOf.delete(key)
        await dataplane.stop()
        log(`Gateway ${key} was deleted; its data plane has stopped`)
      }
      for (const gateway of event.gateways) {
        const key = keyOf(gateway)
        const running = dataplanes.get(key)
        if (running !== undefined && settingsInForce.get(key) !== gateway.settings?.version) {
          // They are read at the start, as in a pod.
          log(`ProxyParameters of Gateway ${key} changed; its data plane starts again`)
          dataplanes.delete(key)
          await running.stop()
        }
        if (dataplanes.has(key)) log(describeGateway(gateway))
        else await addGateway(operator, gateway, dataplanes).catch((error: Error) => log(`error: ${error.message}`))
      }
    })
  })
}

async function startOurDataplane(config: Parameters<typeof startDataplane>[0]['config'], settings?: GatewaySummary['settings']): Promise<Dataplane> {
  const key = 'file' in config ? config.file : `${config.namespace}/${config.gateway}`
  // A data plane that starts again keeps its ports.
  const management = managementOf.get(key) ?? (await pickManagementPorts())
  managementOf.set(key, management)
  const { ports, env } = management
  const ofGateway =
    settings === undefined
      ? {}
      : { settingsFile: settings.config, env: { ...(parseEnv(await readFile(settings.env, 'utf8')) as Record<string, string>), ...env } }
  const dataplane = await startDataplane({ config, ports, env, ...ofGateway }).catch((error: Error) => {
    throw new StartError(error.message)
  })
  stops.unshift(() => dataplane.stop())
  watch(dataplane.program, 'the data plane')
  for (const line of dataplane.program.lines) log(line.text)
  dataplane.program.onLine((line) => log(line.text))
  return dataplane
}

let hasDataplane = false
/** Version of the settings of each running data plane. */
const settingsInForce = new Map<string, string | undefined>()
const managementOf = new Map<string, Awaited<ReturnType<typeof pickManagementPorts>>>()

/**
 * Chooses the management ports. The first data plane uses ADMIN_ADDR, STATS_ADDR and READINESS_ADDR, or the default ports; further data planes use free ports,
 * as does the first one if a default port is taken.
 */
async function pickManagementPorts(): Promise<{ ports: ManagementPorts; env: Record<string, string> }> {
  const env: Record<string, string> = {}
  const pick = async (variable: string, usual: number): Promise<number> => {
    const wanted = isFirst ? (process.env[variable] ?? '') : ''
    const port = Number(wanted.slice(wanted.lastIndexOf(':') + 1))
    if (wanted === '' || port === 0) return (await isPortFree(usual)) ? usual : findFreePort()
    // The data plane reports an address that cannot be used.
    env[variable] = wanted
    return port
  }
  const isFirst = !hasDataplane
  hasDataplane = true
  return { ports: { admin: await pick('ADMIN_ADDR', 15_000), stats: await pick('STATS_ADDR', 15_020), readiness: await pick('READINESS_ADDR', 15_021) }, env }
}

/** Stops everything when a program exits by itself, except a data plane that was stopped because its Gateway was deleted. */
function watch(program: Program, what: string): void {
  void program.exited.then(({ code, signal }) => {
    if (isStopping || code === 0) return
    process.stderr.write(`error: ${what} ended (${signal ?? `exit code ${code}`}): ${lastError(program) ?? 'it printed nothing'}\n`)
    return stopAll(1)
  })
}

function announce(example: Example, directory: string): void {
  const commands = describeCommands(example, shorten(directory))
  if (commands !== '') log(`\ntry:\n${commands}`)
  log('\nCtrl-C stops everything')
}

async function requireDirectory(directory: string): Promise<void> {
  if (!existsSync(directory)) throw new StartError(`no such directory: ${shorten(directory)}`)
  if (!(await stat(directory)).isDirectory()) throw new StartError(`${shorten(directory)} is a file; run it with CONFIG=${shorten(directory)}`)
}

async function requireFreePort(port: number, what: string): Promise<void> {
  if (!(await isPortFree(port))) throw new StartError(`port ${port} of ${what} is in use or not permitted; stop what holds it, or change the port`)
}

async function stopAll(code: number): Promise<void> {
  // A second Ctrl-C exits at once; remaining programs are killed at exit.
  if (isStopping) process.exit(code)
  isStopping = true
  for (const stop of stops) await stop().catch(() => {})
  process.exit(code)
}

const keyOf = (gateway: GatewaySummary) => `${gateway.namespace}/${gateway.name}`
/** A path relative to the working directory if it is below it, else the absolute path. */
function shorten(path: string): string {
  const short = relative(process.cwd(), path) || '.'
  return short.startsWith('..') ? path : short
}

main().catch((error: unknown) => {
  process.stderr.write(`error: ${error instanceof StartError ? error.message : String((error as Error).stack ?? error)}\n`)
  return stopAll(1)
})
