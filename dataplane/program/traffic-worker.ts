import { parentPort, workerData } from 'node:worker_threads'
import { runInThread } from '../management/console/thread.ts'
import { bodyBudget, SharedHeldBytes } from '../http/budget.ts'
import { numberConnections } from '../net/server/accepted.ts'
import { releaseMemoryWhenQuiet } from '../runtime/garbage.ts'
import { SharedCells } from '../runtime/shared-cells.ts'
import { SharedRing } from '../runtime/shared-ring.ts'
import { SharedHealthTable } from '../net/upstream/balancer/shared-health.ts'
import { dialing } from '../net/upstream/dial.ts'
import { createLogging } from '../observe/telemetry/log.ts'
import type { SectionNames } from './workers/config.ts'
import { RESPONSE_BYTES, type WorkerData } from './workers/data.ts'
import { WorkerEndpoint } from './workers/endpoint.ts'
import type { FromWorker, ToWorker } from './workers/messages.ts'
import { BEAT_MS } from './workers/watch.ts'
import { SessionRelay } from './workers/relay.ts'
import { SharedSessions } from './workers/sessions.ts'
import { RelayWriter } from './workers/writer.ts'
import { followOperator } from './operator.ts'
import { openPostgres } from './postgres.ts'
import { openRedis } from './redis.ts'
import { closeParts, createParts, drainParts } from './parts.ts'

/** Entry of a worker thread: handles traffic by the config that the main thread sends. */
const data = workerData as WorkerData
const { index, number, count, memory, version, nodeName, xdsAddress, managementPorts } = data

const beats = new BigInt64Array(memory.beats)
const beat = (): void => void Atomics.store(beats, index, process.hrtime.bigint())
beat()
setInterval(beat, BEAT_MS).unref()

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
const send = (message: FromWorker): void => parentPort?.postMessage(message)
const writer = new RelayWriter((text) => send({ type: 'log', text }))
process.on('exit', () => writer.flushSync())

numberConnections(number * 2 ** 40 + 1)
bodyBudget.share(new SharedHeldBytes(memory.held, index + 1))
const cells = new SharedCells(memory.cells)
const keyedCells = new SharedCells(memory.keyedCells, { evicts: true })
const budgetCells = new SharedCells(memory.budgetCells, { evicts: true })
const health = new SharedHealthTable(cells, memory.epoch)
const names: SectionNames = new WeakMap()
const endpoint = new WorkerEndpoint(send)
const sessions = new SharedSessions(memory.sessions, number)
let hasSessions: () => boolean = () => false
const relay = new SessionRelay({ number, sessions, secret: data.relaySecret, isUsed: () => hasSessions() })
const operator = xdsAddress === undefined ? undefined : followOperator(xdsAddress)
dialing.share(memory.dialed)
dialing.apply(data, () => managementPorts, operator)
const parts = createParts({
  logging: createLogging({ writer, ...data.log }),
  nodeName,
  version,
  keys: data.keys.map((key) => Buffer.from(key)),
  peer: data.peer,
  loopSecret: Buffer.from(data.loopSecret),
  ...(xdsAddress !== undefined && { shares: { want: (bucket) => endpoint.wantShare(bucket) } }),
  quotas: { assign: (bucket) => endpoint.assignQuota(bucket) },
  worker: {
    count,
    shared: {
      cells,
      keyedCells,
      budgetCells,
      health,
      responses: new SharedRing(memory.responses, RESPONSE_BYTES),
      keyValue: (plugin, call) => endpoint.keyValue(plugin, call),
      nameOf: (section) => names.get(section),
    },
    ports: endpoint.ports(index === 0),
    sharing: sessions,
    relay,
    messages: relay,
  },
})
const { store, binds, gateway, telemetry, logging } = parts
releaseMemoryWhenQuiet()

const redis = await openRedis(data.redis, logging, telemetry.metrics.registry)
const postgres = await openPostgres(data.postgres, telemetry.metrics.registry)
const recorder =
  data.ledger &&
  (await import('../store/ledger/recorder.ts')).startRecorder({
    settings: data.ledger.settings,
    pending: data.ledger.pending,
    telemetry,
    send: (batch) => send({ type: 'ledger', batch }),
  })
hasSessions = () => parts.services.factories.mcp !== undefined
await relay.listen({ onRequest: (exchange) => gateway.handle(exchange), onFinish: (exchange) => binds.finish(exchange) })
parentPort?.on('message', (message: ToWorker) => endpoint.receive(message))
endpoint.open({
  store,
  names,
  tracer: gateway.tracer,
  status: () => ({ pending: binds.pending(), failures: binds.failures().map(({ message }) => message) }),
  settled: () => binds.settled(),
  collect: (isScrape) => telemetry.metrics.registry.dump(isScrape),
  setLevel: (spec) => logging.setLevel(spec),
  console: ({ method, body }) => runInThread(parts, method, body as never),
  drain: (settings) => drainParts(parts, settings),
  async finish() {
    relay.close()
    recorder?.close()
    await closeParts(parts)
    await redis?.close()
    await postgres?.close()
    await telemetry.close()
  },
})
