import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isScalar, parseAllDocuments, visit } from 'yaml'
import { send } from '../client.ts'
import { startDataplane, type Dataplane } from '../program/dataplane.ts'
import { readExample, startUpstream, writeCertificates, type CommandSpec, type Example, type Running } from './example.ts'
import type { ExampleRun } from './expectations.ts'
import type { ConditionEvent, Operator } from '../program/operator.ts'
import { findFreePort } from '../program/ports.ts'

const run = promisify(execFile)
const CLUSTER_SCOPED = new Set(['GatewayClass', 'Namespace'])
/** Ports that commands may use besides those of manifests and upstreams. */
const ADMIN_PORT = 15_000
const STATS_PORT = 15_020
const READINESS_PORT = 15_021

/** A copy of an example in which every port is a free one and every object without a namespace is in a namespace named after the example. */
export interface PreparedExample {
  readonly name: string
  readonly directory: string
  readonly example: Example
  readonly ports: ReadonlyMap<number, number>
  /** Set when the example is a `-f` file. */
  readonly configFile: string | undefined
  /** Upstreams that are already running, because the operator fetches keys from them. */
  readonly early: ReadonlyMap<string, Running>
}

/** Whether an example is a config file of the data plane instead of manifests. */
export const hasConfigFile = (source: string): boolean => existsSync(join(source, 'config.yaml'))

/**
 * Copies an example from `source` to `directory` with free ports, and generates its certificates. Objects of `changes` are added to its manifests and replace
 * those of the same kind and name.
 */
export async function prepareExample(name: string, source: string, directory: string, changes = ''): Promise<PreparedExample> {
  await cp(source, directory, { recursive: true, filter: (path) => !/generated|\.ts$|\.md$|\/try\.yaml$/.test(path) })
  const example = await readExample(source)
  const isFile = hasConfigFile(source)
  const path = join(directory, isFile ? 'config.yaml' : 'manifests.yaml')
  const text = mergeManifests(await readFile(path, 'utf8'), changes)
  const ports = new Map<number, number>()
  for (const port of [...portsIn(text), ...(example.upstreams ?? []).map((upstream) => upstream.port)]) {
    if (!ports.has(port)) ports.set(port, await findFreePort())
  }
  const rewritten = replacePorts(text, ports)
  await writeFile(path, isFile ? rewritten : putIntoNamespace(rewritten, name))
  const plugin = join(directory, 'plugin.yaml')
  if (existsSync(plugin)) await writeFile(plugin, putIntoNamespace(await readFile(plugin, 'utf8'), name))
  await writeCertificates(directory, example.certificates)
  if (example.certificates !== undefined) {
    const generated = join(directory, 'generated', 'manifests.yaml')
    await writeFile(generated, putIntoNamespace(await readFile(generated, 'utf8'), name))
  }
  const early = new Map<string, Running>()
  for (const spec of example.upstreams ?? [])
    if (spec.kind === 'idp') early.set(spec.name, await startUpstream({ ...spec, port: ports.get(spec.port) ?? spec.port }, directory))
  return { name, directory, example, ports, configFile: isFile ? path : undefined, early }
}

/** A running example: its upstreams and a data plane, which gets its config from a shared operator or from the example's `-f` file. */
export interface RunningExample extends ExampleRun {
  /** Runs one of the example's commands; returns its output, with the ports as the manifests write them. */
  runCommand(command: CommandSpec): Promise<string>
  stop(): Promise<void>
}

/** Starts the upstreams and the data plane of an example. `entry` is a bundled data plane, which starts faster than the sources. */
export async function startExample(prepared: PreparedExample, operator: Operator | undefined, entry: string): Promise<RunningExample> {
  const { name, directory, example, ports, early } = prepared
  const port = (written: number) => ports.get(written) ?? written
  const upstreams = new Map<string, Running>()
  for (const spec of example.upstreams ?? [])
    upstreams.set(spec.name, early.get(spec.name) ?? (await startUpstream({ ...spec, port: port(spec.port) }, directory)))
  const closeUpstreams = () => Promise.all([...upstreams.values()].map((upstream) => upstream.close()))
  let dataplane: Dataplane
  try {
    dataplane = await startDataplane({ config: configOf(prepared, operator), entry })
  } catch (error) {
    await closeUpstreams()
    throw error
  }
  const generated = (file: string) => readFileSync(join(directory, 'generated', file), 'utf8')
  const namespaces = new Set([name, ...(operator?.gateways() ?? []).filter((gateway) => gateway.name === name).map((gateway) => gateway.namespace)])
  return {
    directory,
    dataplane,
    port,
    upstream(upstream) {
      const requests = upstreams.get(upstream)?.requests
      if (requests === undefined) throw new Error(`run.ts of ${name} has no HTTP upstream "${upstream}"`)
      return { requests }
    },
    send: (written, request = {}) => send({ port: port(written), ...request }),
    tls: (sni) => ({ ca: generated('ca.crt'), sni }),
    keyPair: (certificate) => ({ cert: generated(`${certificate}.crt`), key: generated(`${certificate}.key`) }),
    conditions: () => (operator?.events ?? []).filter((event): event is ConditionEvent => event.event === 'condition' && namespaces.has(event.namespace)),
    async runCommand({ command }) {
      const { admin, stats, readiness } = dataplane.ports
      const all = new Map([...ports, [ADMIN_PORT, admin], [STATS_PORT, stats], [READINESS_PORT, readiness]])
      const text = replacePorts(command, all).replaceAll('{dir}', directory)
      const { stdout } = await run('bash', ['-c', text], { timeout: 60_000 })
      return replacePorts(stdout, new Map([...all].map(([written, used]) => [used, written])))
    },
    async stop() {
      await dataplane.stop()
      await closeUpstreams()
    },
  }
}

function configOf(prepared: PreparedExample, operator: Operator | undefined): Parameters<typeof startDataplane>[0]['config'] {
  if (prepared.configFile !== undefined) return { file: prepared.configFile }
  if (operator === undefined) throw new Error(`${prepared.name} needs an operator`)
  // Cross-namespace examples set the namespace of their Gateway; all others are in a namespace named after the example.
  const listening = new Set(prepared.ports.values())
  const gateway = operator.gateways().find((candidate) => candidate.listeners.some((listener) => listening.has(listener.port)))
  if (gateway === undefined)
    throw new Error(`the operator has no Gateway of ${prepared.name}; its events:\n${operator.events.map((event) => JSON.stringify(event)).join('\n')}`)
  return { address: operator.address, namespace: gateway.namespace, gateway: gateway.name }
}

/** Values of `port` keys above 1024, which must be unique on one machine. */
function portsIn(text: string): number[] {
  const ports: number[] = []
  for (const document of parseAllDocuments(text)) {
    visit(document, {
      Pair(_key, pair) {
        if (isScalar(pair.key) && pair.key.value === 'port' && isScalar(pair.value) && Number(pair.value.value) > 1024) ports.push(Number(pair.value.value))
      },
    })
  }
  return ports
}

function replacePorts(text: string, ports: ReadonlyMap<number, number>): string {
  return text.replaceAll(/\b\d{4,5}\b/g, (number) => String(ports.get(Number(number)) ?? number))
}

function mergeManifests(text: string, changes: string): string {
  if (changes === '') return text
  const keyOf = (document: ReturnType<typeof parseAllDocuments>[number]): string =>
    [document.get('kind'), document.getIn(['metadata', 'namespace']), document.getIn(['metadata', 'name'])].join(' ')
  const added = parseAllDocuments(changes) as ReturnType<typeof parseAllDocuments>[number][]
  const replaced = new Set(added.map((document) => keyOf(document)))
  const kept = (parseAllDocuments(text) as typeof added).filter((document) => !replaced.has(keyOf(document)))
  return [...kept, ...added].map((document) => String(document).replace(/^---\n/, '')).join('---\n')
}

function putIntoNamespace(text: string, namespace: string): string {
  const documents = parseAllDocuments(text)
  for (const document of documents) {
    if (CLUSTER_SCOPED.has(String(document.get('kind'))) || document.hasIn(['metadata', 'namespace'])) continue
    document.setIn(['metadata', 'namespace'], namespace)
  }
  return documents.map((document) => String(document).replace(/^---\n/, '')).join('---\n')
}
