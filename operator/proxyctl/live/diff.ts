import { isDeepStrictEqual } from 'node:util'
import { stringify } from 'yaml'
import { diffLines, type DiffLine } from '../../../dataplane/config/edit/diff.ts'
import { withRealNames } from '../../../dataplane/config/real-names.ts'
import { redactMessage, redactSecret } from '../../../dataplane/management/admin/dump.ts'
import { connect, loadConfig } from '../../kube/connection.ts'
import type { ConfigMessage, Translation } from '../../model/translation.ts'
import { checkExpression } from '../../program/expression.ts'
import { listParameters } from '../../program/gateway-status.ts'
import { findTroubles } from '../../program/report.ts'
import { readGrantMode } from '../../program/settings.ts'
import { loadDirectory } from '../../source/directory.ts'
import { keyOf, kinds, type Kind, type KubeObject } from '../../source/objects.ts'
import { readManifestText, type Load } from '../../source/reader.ts'
import { createSnapshot, updateSnapshot, type ObjectChange, type Snapshot } from '../../source/snapshot.ts'
import { createTranslator } from '../../translate/translator.ts'
import { CommandError, UsageError, type Output } from '../output.ts'
import type { Command, Invocation } from '../types.ts'
import { explainUnreachable, kubeconfigOf } from './admin.ts'
import { readCluster } from './snapshot.ts'

/** A message of a Gateway that differs, under the names of the user. */
interface Change {
  /** The object that it comes from, such as `HTTPRoute shop/cart, rule 0`. */
  readonly object: string
  readonly change: 'added' | 'removed' | 'changed'
  /** Credentials are redacted. */
  readonly from?: unknown
  readonly to?: unknown
}

interface GatewayDiff {
  /** `<namespace>/<name>` */
  readonly gateway: string
  readonly changes: readonly Change[]
}

interface Problems {
  readonly added: readonly string[]
  readonly solved: readonly string[]
}

/** Shows what the config of each Gateway and the statuses of objects would be with manifests, before they are applied. Returns 1 if anything differs. */
export const runDiff: Command = async (invocation) => {
  const { args, options, output } = invocation
  const files = options.filename ?? []
  if (args.length > 0 || files.length === 0) throw new UsageError('diff takes manifests with -f: a file, a directory, or - for standard input')
  const kubeconfig = kubeconfigOf(invocation)
  const loads = await readFiles(files, invocation, options.namespace ?? namespaceOf(kubeconfig))
  const { gateways, problems, notes } = await output.wait('reading the cluster', compareWithCluster(loads, kubeconfig, invocation))
  output.print({ gateways, problems, notes }, () => [
    ...gateways.flatMap((each) => describeGateway(each, output)),
    ...problems.added.map((problem) => output.paint('red', `new problem: ${problem}`)),
    ...problems.solved.map((problem) => output.paint('green', `solved: ${problem}`)),
    ...(isEmpty(gateways, problems) ? ['no difference'] : []),
    ...notes.map((note) => output.paint('gray', `note: ${note}`)),
  ])
  return isEmpty(gateways, problems) ? 0 : 1
}

const isEmpty = (gateways: readonly GatewayDiff[], { added, solved }: Problems): boolean => gateways.length + added.length + solved.length === 0

/** The namespace of the context, which kubectl uses for objects without one. */
function namespaceOf(kubeconfig: string | undefined): string | undefined {
  const config = loadConfig(kubeconfig)
  return config.getContextObject(config.getCurrentContext())?.namespace
}

type Files = Pick<Load, 'objects' | 'locate'>

/** Rejects with every mistake for which an API server would reject the files. */
async function readFiles(files: readonly string[], { readInput }: Invocation, namespace: string | undefined): Promise<readonly Files[]> {
  const loads = await Promise.all(
    files.map(async (file) => {
      if (file === '-') return readManifestText('stdin', await readInput(), namespace)
      return loadDirectory(file, namespace).catch((error: NodeJS.ErrnoException) => {
        throw new CommandError('PX6009', `${file}: ${error.code === 'ENOENT' ? 'no such file or directory' : error.message}`, { cause: error })
      })
    }),
  )
  const mistakes = loads.flatMap(({ problems }) => problems.flatMap(({ severity, text }) => (severity === 'error' ? [text] : [])))
  if (mistakes.length > 0) throw new CommandError('PX6009', `the API server would reject the manifests:\n${mistakes.join('\n')}`)
  if (loads.every((load) => writtenIn(load).length === 0))
    throw new CommandError('PX6009', `${files.join(', ')}: no manifests of kinds that the operator reads (.yaml, .yml or .json)`)
  return loads
}

/** The objects that files hold; a GatewayClass that manifests imply is in no file. */
const writtenIn = ({ objects, locate }: Files): KubeObject[] =>
  objects.filter(({ kind, metadata }) => locate(kind, metadata.namespace, metadata.name, []) !== undefined)

async function compareWithCluster(
  loads: readonly Files[],
  kubeconfig: string | undefined,
  { env }: Invocation,
): Promise<{ readonly gateways: readonly GatewayDiff[]; readonly problems: Problems; readonly notes: readonly string[] }> {
  const written = loads.flatMap(writtenIn)
  const connection = connect({ kubeconfig, userAgent: 'proxyctl' })
  try {
    const namespaces = [...new Set(written.flatMap(({ metadata: { namespace } }) => (namespace === '' ? [] : [namespace])))]
    const { objects, unread, isInferenceEnabled } = await readCluster(connection, namespaces)
    const before = createSnapshot(objects)
    const live = new Map(objects.map((object) => [`${object.kind} ${keyOf(object)}`, object]))
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const applied = written.map((object) => applyTo(live.get(`${object.kind} ${keyOf(object)}`), object, now))
    const after = updateSnapshot(before, applied.map(toChange))
    const translate = createTranslator()
    const options = { checkExpression, backendGrants: readGrantMode(env), isInferenceEnabled }
    const [old, next] = [translate(before, options), translate(after, options)]
    const notes = [...describeUnread(unread, namespaces), ...describeParameters(applied, live, after), ...describeMissingClass(before, next)]
    return { gateways: compareGateways(old, next), problems: compareProblems(old, next), notes }
  } catch (error) {
    throw explainUnreachable(error, kubeconfig)
  } finally {
    connection.close()
  }
}

const toChange = (object: KubeObject): ObjectChange => ({ kind: object.kind, namespace: object.metadata.namespace, name: object.metadata.name, object })

/** An object of the cluster after `kubectl apply` of a manifest: identity, age and status stay, and what the API server sets in kinds of its own. */
function applyTo(live: KubeObject | undefined, written: KubeObject, now: string): KubeObject {
  const { metadata } = written
  if (live === undefined) return { ...written, metadata: { ...metadata, creationTimestamp: now } }
  const { uid, generation, creationTimestamp } = live.metadata
  const merge = (field: 'labels' | 'annotations'): object => {
    const merged = { ...live.metadata[field], ...metadata[field] }
    return Object.keys(merged).length === 0 ? {} : { [field]: merged }
  }
  const isCore = kinds[live.kind].group === ''
  const { spec, status } = live as { spec?: object; status?: object }
  const next = {
    ...(isCore ? live : {}),
    ...written,
    ...(isCore && spec !== undefined && { spec: { ...spec, ...(written as { spec?: object }).spec } }),
    ...(status !== undefined && { status }),
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      generation,
      creationTimestamp,
      ...(uid !== undefined && { uid }),
      ...merge('labels'),
      ...merge('annotations'),
    },
  } as KubeObject
  return isDeepStrictEqual(next, live) ? live : next
}

function describeUnread(unread: readonly Kind[], namespaces: readonly string[]): string[] {
  if (unread.length === 0) return []
  return [
    `you may not list ${unread.join(', ')} in all namespaces: those outside of ${namespaces.join(', ')} count as missing, so that what depends on them is not compared`,
  ]
}

/** Objects of Gateways are not compared. */
function describeParameters(applied: readonly KubeObject[], live: ReadonlyMap<string, KubeObject>, after: Snapshot): string[] {
  return applied.flatMap((object) => {
    if (object.kind !== 'ProxyParameters' || live.get(`ProxyParameters ${keyOf(object)}`) === object) return []
    const users = after.list('Gateway').filter((gateway) => listParameters(after, gateway).includes(object))
    if (users.length === 0) return [`ProxyParameters ${keyOf(object)} is used by no Gateway`]
    return [`ProxyParameters ${keyOf(object)} changes the objects of Gateway ${users.map(keyOf).join(', ')}, whose pods may be replaced`]
  })
}

const describeMissingClass = (before: Snapshot, { gateways }: Translation): string[] =>
  gateways.size > 0
    ? []
    : [
        `no Gateway belongs to this controller; the cluster has the GatewayClasses ${before.list('GatewayClass').map(keyOf).join(', ') || '(none: is the operator installed?)'}`,
      ]

function compareGateways(before: Translation, after: Translation): GatewayDiff[] {
  const names = [...new Set([...before.gateways.keys(), ...after.gateways.keys()])].sort()
  return names.flatMap((gateway) => {
    const changes = compareMessages(before.gateways.get(gateway) ?? [], after.gateways.get(gateway) ?? [])
    return changes.length === 0 ? [] : [{ gateway, changes }]
  })
}

function compareMessages(before: readonly ConfigMessage[], after: readonly ConfigMessage[]): Change[] {
  const [old, next] = [byKey(before), byKey(after)]
  const [oldSecrets, nextSecrets] = [secretsOf(before), secretsOf(after)]
  return [...new Set([...old.keys(), ...next.keys()])].flatMap((key): Change[] => {
    const [from, to] = [old.get(key), next.get(key)]
    const any = to ?? from
    if (any === undefined || (from && to && isDeepStrictEqual(from.message, to.message))) return []
    return [
      {
        object: nameOf(any),
        change: from === undefined ? 'added' : to === undefined ? 'removed' : 'changed',
        ...(from && { from: show(from, oldSecrets) }),
        ...(to && { to: show(to, nextSecrets) }),
      },
    ]
  })
}

const byKey = (messages: readonly ConfigMessage[]): ReadonlyMap<string, ConfigMessage> => new Map(messages.map((each) => [`${each.kind} ${each.key}`, each]))
const secretsOf = (messages: readonly ConfigMessage[]): object[] => messages.flatMap(({ kind, message }) => (kind === 'secret' ? [message] : []))

/** Fields that the name of a message has already. */
const NAMED = ['key', 'route', 'policy', 'gateway', 'listenerSet', 'creationTimestamp'] as const

/** A message as the user knows it: real names of vendors, and no credential. */
function show({ kind, message }: ConfigMessage, secrets: readonly unknown[]): unknown {
  const shown = {
    ...((kind === 'secret' ? redactSecret(message) : redactMessage(withRealNames(kind, message), secrets)) as object),
  } as Record<string, unknown>
  for (const field of NAMED) delete shown[field]
  return shown
}

/** The object that a message comes from. */
function nameOf({ kind, key, message }: ConfigMessage): string {
  const { route, policy, target, listenerSet, name, port, type } = message as {
    route?: { kind: string; namespace: string; name: string; rule?: string; ruleIndex: number }
    policy?: { kind: string; namespace: string; name: string }
    target?: { kind: string; namespace: string; name: string; section?: string }
    listenerSet?: { namespace: string; name: string }
    name?: string
    port?: number
    type?: string
  }
  if (route !== undefined) return `${route.kind} ${route.namespace}/${route.name}, rule ${route.rule ?? route.ruleIndex}`
  if (policy !== undefined) {
    const of = target === undefined ? '' : ` for ${target.kind} ${target.namespace}/${target.name}${target.section === undefined ? '' : ` ${target.section}`}`
    return `${policy.kind} ${policy.namespace}/${policy.name}${of}`
  }
  if (kind === 'bind') return `port ${port ?? key}`
  if (kind === 'listener') return `${listenerSet === undefined ? '' : `ListenerSet ${listenerSet.namespace}/${listenerSet.name}, `}listener ${name ?? key}`
  if (kind === 'backend') return `ProxyBackend ${key}`
  if (kind === 'service') return key.endsWith('.inference') ? `InferencePool ${key.slice(0, -'.inference'.length)}` : `Service ${key}`
  const [source, ...rest] = key.startsWith(`${type ?? ''}/`) ? key.slice((type ?? '').length + 1).split('/') : [key]
  if (source === 'configmap' || source === 'secret') return `${source === 'secret' ? 'Secret' : 'ConfigMap'} ${rest.join('/')}`
  return `Secret ${[source, ...rest].join('/')}`
}

function compareProblems(before: Translation, after: Translation): Problems {
  const [old, next] = [problemsOf(before), problemsOf(after)]
  return { added: [...next.difference(old)], solved: [...old.difference(next)] }
}

const problemsOf = ({ statuses }: Translation): Set<string> =>
  new Set(
    findTroubles(statuses).map(({ kind, namespace, name, type, reason, message }) => {
      return `${kind} ${namespace === '' ? name : `${namespace}/${name}`}: ${type}: ${reason}: ${message}`
    }),
  )

const marks = { added: '+', removed: '-', changed: '~' } as const
const lineMarks = { added: '+', removed: '-', same: ' ', gap: ' ' } as const

function describeGateway({ gateway, changes }: GatewayDiff, output: Output): string[] {
  return [
    `Gateway ${gateway}`,
    ...changes.flatMap(({ object, change, from, to }) => {
      const lines = diffLines(linesOf(from), linesOf(to))
      return [
        paint(output, change, `${marks[change]} ${object}`),
        ...(lines.length === 0
          ? ['      a credential differs']
          : lines.map((line) => paint(output, line.kind, `${lineMarks[line.kind]}     ${textOf(line)}`.trimEnd()))),
      ]
    }),
  ]
}

const textOf = ({ kind, text }: DiffLine): string => (kind === 'gap' ? '...' : text)
const linesOf = (value: unknown): string[] =>
  value === undefined ? [] : stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd().split('\n')
const paint = (output: Output, kind: Change['change'] | DiffLine['kind'], text: string): string =>
  kind === 'added' ? output.paint('green', text) : kind === 'removed' ? output.paint('red', text) : kind === 'changed' ? output.paint('yellow', text) : text
