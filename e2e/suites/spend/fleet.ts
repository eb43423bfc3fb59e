import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { replaceFile } from '../../harness/files.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { startOperator, type Operator } from '../../harness/program/operator.ts'
import { waitUntil } from '../../harness/wait.ts'
import { Client } from './load.ts'
import { createNetworks, type Networks } from './network.ts'
import { PRICES, startProvider, type Provider } from './provider.ts'
import { startRelay, type Relay } from './relay.ts'

/** Port of the Gateway, in the network of each replica. */
const PORT = 8080
const GATEWAY = { namespace: 'default', gateway: 'spend' }
const CLOCK = ['--import', new URL('clock.ts', import.meta.url).href]

/** A budget of the route with the path `/<name>`. */
export interface RouteBudget {
  readonly name: string
  readonly budget: object
  /** Default: the provider. */
  readonly isPlain?: boolean
}

/** A data plane with a network of its own. */
export interface Replica {
  readonly index: number
  readonly client: Client
  readonly dataplane: Dataplane
  /** The file of its ledger. */
  readonly ledger: string
  /** Name of the file of its clock. */
  readonly clock: string
  /** Milliseconds of its clock. */
  setClock(epochMs: number): void
  restart(): Promise<void>
}

export interface FleetOptions {
  readonly replicas: number
  readonly budgets: readonly RouteBudget[]
  /** More of the config file of the data planes. */
  readonly config?: object
}

/** An operator in directory mode, and replicas of one Gateway with two workers each. */
export class Fleet {
  readonly directory: string
  readonly provider: Provider
  readonly networks: Networks
  readonly replicas: Replica[] = []
  readonly #options: FleetOptions
  /** Between the replicas and the operator, which listens on loopback. */
  readonly #relay: Relay
  #operator: Operator | undefined

  private constructor(options: FleetOptions, parts: { directory: string; provider: Provider; networks: Networks; relay: Relay }) {
    this.#options = options
    this.directory = parts.directory
    this.provider = parts.provider
    this.networks = parts.networks
    this.#relay = parts.relay
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const networks = await createNetworks(options.replicas)
    const [directory, provider, relay] = await Promise.all([mkdtemp(join(tmpdir(), 'spend-')), startProvider(networks.host), startRelay(networks.host)])
    const fleet = new Fleet(options, { directory, provider, networks, relay })
    await writeFile(join(directory, 'clock-operator'), '0')
    await replaceFile(join(directory, 'manifests.yaml'), manifests(options.budgets, networks.host, provider.port))
    await fleet.startOperator()
    await Promise.all(networks.all.map((_, index) => fleet.#startReplica(index)))
    return fleet
  }

  async stop(): Promise<void> {
    for (const { client, dataplane } of this.replicas) {
      client.close()
      await dataplane.stop(100)
    }
    await this.#operator?.stop()
    await this.provider.close()
    await this.#relay.close()
    for (const network of this.networks.all) network.delete()
    await rm(this.directory, { recursive: true, force: true })
  }

  /** Starts the operator, if it does not run. */
  async startOperator(): Promise<void> {
    this.#operator ??= await startOperator({
      directory: this.directory,
      nodeArgs: CLOCK,
      env: { CLOCK_FILE: join(this.directory, 'clock-operator') },
    })
    this.#relay.target = Number(this.#operator.address.split(':').at(-1))
  }

  /** SIGKILL. */
  async killOperator(): Promise<void> {
    this.#operator?.program.signal('SIGKILL')
    await this.#operator?.program.exited
    rmSync(join(this.directory, 'clock-operator.read'), { recursive: true })
    this.#operator = undefined
  }

  /** Sets the clocks of all programs to a time, those of replicas apart by `skewsMs`. */
  setClocks(epochMs: number, skewsMs: readonly number[] = []): void {
    writeFileSync(join(this.directory, 'clock-operator'), String(epochMs - Date.now()))
    for (const { index, setClock } of this.replicas) setClock(epochMs + (skewsMs[index] ?? 0))
  }

  /** Waits until all threads of all programs have applied the clocks. */
  async settleClocks(): Promise<void> {
    const clocks = [...(this.#operator === undefined ? [] : ['clock-operator']), ...this.replicas.map(({ clock }) => clock)]
    const isApplied = (clock: string): boolean => {
      const file = join(this.directory, clock)
      const text = readFileSync(file, 'utf8')
      return readdirSync(`${file}.read`).every((thread) => readFileSync(join(`${file}.read`, thread), 'utf8') === text)
    }
    await waitUntil('all clocks are set', () => clocks.every(isApplied))
  }

  /** Whether the streams of all replicas are in a state. A replica without the metric has opened none yet. */
  async areConnected(isConnected: boolean): Promise<boolean> {
    const metrics = await Promise.all(this.replicas.map(({ dataplane }) => dataplane.metrics()))
    return metrics.every((text) => (/^proxy_budget_shares_connected (\d)$/m.exec(text)?.[1] ?? '0') === (isConnected ? '1' : '0'))
  }

  async #startReplica(index: number): Promise<void> {
    const network = this.networks.all[index]
    if (network === undefined) throw new Error(`no network for replica ${index}`)
    // The operator reads files of its directory that end in `yaml`.
    const [config, ledger, clockFile] = ['config', 'db', 'clock'].map((suffix) => join(this.directory, `replica-${index}.${suffix}`)) as [
      string,
      string,
      string,
    ]
    // The provider and the operator share a machine.
    const upstreams = { addresses: [this.networks.host] }
    await writeFile(
      config,
      stringify({ config: { ledger: { sqlite: { path: ledger }, team: 'request.headers["x-team"]' }, upstreams, ...this.#options.config } }),
    )
    const setClock = (epochMs: number): void => writeFileSync(clockFile, String(epochMs - Date.now()))
    setClock(Date.now())
    const start = (): Promise<Dataplane> =>
      startDataplane({
        config: { file: config },
        network,
        nodeArgs: CLOCK,
        log: 'warn',
        env: {
          WORKERS: '2',
          XDS_ADDRESS: `http://${this.networks.host}:${this.#relay.port}`,
          NAMESPACE: GATEWAY.namespace,
          GATEWAY: GATEWAY.gateway,
          CLOCK_FILE: clockFile,
        },
      })
    let dataplane = await start()
    const client = new Client(`http://${network.address}:${PORT}`)
    this.replicas.push({
      index,
      client,
      ledger,
      clock: `replica-${index}.clock`,
      setClock,
      get dataplane() {
        return dataplane
      },
      async restart() {
        await dataplane.stop()
        dataplane = await start()
      },
    })
    this.replicas.sort((a, b) => a.index - b.index)
  }
}

function manifests(budgets: readonly RouteBudget[], host: string, provider: number): string {
  const group = 'gateway.networking.k8s.io'
  const backend = { group: 'proxy.dev', kind: 'ProxyBackend', name: 'provider' }
  const objects = [
    {
      apiVersion: `${group}/v1`,
      kind: 'Gateway',
      metadata: { name: GATEWAY.gateway },
      spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: PORT, protocol: 'HTTP' }] },
    },
    {
      apiVersion: 'proxy.dev/v1alpha1',
      kind: 'ProxyBackend',
      metadata: { name: backend.name },
      spec: {
        ai: { provider: { openai: {}, host, port: provider } },
        policies: { auth: { key: 'key' }, ai: { prices: { m: { input: String(PRICES.input), output: String(PRICES.output) } } } },
      },
    },
    ...budgets.flatMap(({ name, budget, isPlain = false }) => {
      const matches = [{ path: { type: 'PathPrefix', value: `/${name}` } }]
      const rewrite = { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/v1/chat/completions' } } }
      return [
        {
          apiVersion: `${group}/v1`,
          kind: 'HTTPRoute',
          metadata: { name },
          spec: { parentRefs: [{ name: GATEWAY.gateway }], rules: [isPlain ? { matches } : { matches, filters: [rewrite], backendRefs: [backend] }] },
        },
        {
          apiVersion: 'proxy.dev/v1alpha1',
          kind: 'ProxyPolicy',
          metadata: { name },
          spec: {
            targetRefs: [{ group, kind: 'HTTPRoute', name }],
            traffic: { budgets: [{ name, scope: 'Gateway', ...budget }], ...(isPlain ? { directResponse: { status: 200, body: 'ok' } } : {}) },
          },
        },
      ]
    }),
  ]
  return objects.map((object) => stringify(object)).join('---\n')
}
