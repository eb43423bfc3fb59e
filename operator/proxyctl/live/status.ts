import { CONTROLLER_NAME, SHADOWED } from '#api/names.ts'
import { connect } from '../../kube/connection.ts'
import { collectionPaths, statusKinds } from '../../kube/resources.ts'
import { findTroubles, type ConditionReport } from '../../program/report.ts'
import type { ObjectStatus } from '../../model/translation.ts'
import { explainUnreachable, kubeconfigOf } from './admin.ts'
import { checkNamespace } from './gateways.ts'
import { CommandError, alignColumns, type Colour, type Output } from '../output.ts'
import type { Command, Invocation, Row } from '../types.ts'
import { describeDeployment, WORKLOAD_SELECTOR, type Deployment, type Pod } from './workloads.ts'

const severities = ['error', 'warning', 'pending', 'ok'] as const
const colours: Readonly<Record<Row['severity'], Colour>> = { error: 'red', warning: 'yellow', pending: 'gray', ok: 'green' }

/** Prints every resource of this controller, the worst first. Returns 1 if one has an error, and rejects if a named namespace has none. */
export const runStatus: Command = async (invocation) => {
  const { options, output } = invocation
  const all =
    options.dir === undefined
      ? await output.wait('reading statuses from the cluster', describeCluster(invocation))
      : await describeManifests(options.dir, options.namespace)
  const { namespace: only } = options
  if (only !== undefined && !all.some(({ namespace }) => namespace === only))
    throw new CommandError('PX6008', `no resource of this gateway in namespace ${only}`)
  const rows = all
    .filter(({ namespace }) => only === undefined || namespace === '' || namespace === only)
    .sort(
      (a, b) =>
        severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
        compare(a.kind, b.kind) ||
        compare(a.namespace, b.namespace) ||
        compare(a.name, b.name),
    )
  output.print({ resources: rows }, () => {
    if (rows.length === 0) return ['no resource of this gateway']
    const lines = rows.flatMap(({ severity, kind, namespace, name, conditions }) => {
      const object = namespace === '' ? name : `${namespace}/${name}`
      const [first = '', ...more] = conditions
      return [[severity, kind, object, first], ...more.map((text) => ['', '', '', text])]
    })
    return alignRows(output, lines)
  })
  return rows.some(({ severity }) => severity === 'error') ? 1 : 0
}

/** Rows in columns. A severity in the first one has its colour. */
export function alignRows(output: Output, rows: readonly (readonly string[])[]): string[] {
  // Colours after alignment: their codes have no width.
  return alignColumns(rows).map((line, index) => {
    const severity = severities.find((each) => each === rows[index]?.[0])
    return (severity === undefined ? line : output.paint(colours[severity], severity) + line.slice(severity.length)).trimEnd()
  })
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The row of an object: its severity and its bad conditions, the worst first. */
export function describeObject(object: ObjectStatus): Row {
  const { kind, namespace = '', name, status } = object
  const troubles = findTroubles([object]).sort((a, b) => rank(a) - rank(b))
  const isEmpty = !JSON.stringify(status).includes('"conditions"')
  const worst = severities[Math.min(...troubles.map(rank))] ?? 'ok'
  const severity = isEmpty ? 'pending' : worst
  const conditions = isEmpty
    ? ['no controller has written a status yet']
    : troubles.map(
        ({ name: at, type, status: is, reason, message }) => `${at === name ? '' : `${at.slice(name.length + 1)}: `}${type}=${is} ${reason}: ${message}`,
      )
  return { severity, kind, namespace, name, conditions }
}

/** Index in `severities`: an object that is not in force is an error, one that is partly in force a warning, and a Gateway without pods pending. */
function rank({ type, status, reason }: ConditionReport): number {
  if (type === 'Programmed' && reason === 'Pending') return severities.indexOf('pending')
  return severities.indexOf(reason === 'PartiallyValid' || type === 'PartiallyInvalid' || type === SHADOWED || status === 'Unknown' ? 'warning' : 'error')
}

/** The statuses that the manifests would get, and the documents that would be rejected. */
async function describeManifests(directory: string, defaultNamespace: string | undefined): Promise<Row[]> {
  // Loaded on demand: the translation is large.
  const { readManifests } = await import('../files/manifests.ts')
  const { problems, translation, strayRoutes } = await readManifests(directory, defaultNamespace)
  return [
    ...problems
      .filter(({ severity }) => severity === 'error')
      .map(({ file, line, field, message }): Row => {
        return { severity: 'error', kind: 'manifest', namespace: '', name: `${file}:${line}`, conditions: [field === '' ? message : `${field}: ${message}`] }
      }),
    ...translation.statuses.map(describeObject),
    ...strayRoutes.map(({ message, kind, namespace, name }): Row => ({ severity: 'warning', kind, namespace, name, conditions: [message] })),
  ]
}

interface Item {
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: { readonly controllerName?: string; readonly gatewayClassName?: string }
  readonly status?: object
}

/** The resources of this controller on the cluster, those that the user may read. */
export async function describeCluster(invocation: Invocation): Promise<Row[]> {
  const connection = connect({ kubeconfig: kubeconfigOf(invocation), userAgent: 'proxyctl' })
  /** Objects of a kind, by the newest version that is served; none when no version is. */
  const list = async (kind: string, paths: readonly string[]): Promise<{ kind: string; items: Item[] }> => {
    for (const path of paths) {
      const found = await connection.request<{ items?: Item[] }>('GET', path).catch((error: { status?: number }) => {
        // Without InferencePools in use, users often have no permission to list them.
        if (error.status === 404 || (error.status === 403 && kind === 'InferencePool')) return undefined
        throw error
      })
      if (found !== undefined) return { kind, items: found.items ?? [] }
    }
    return { kind, items: [] }
  }
  /** Data planes; none where the user may not see them. */
  const listWorkloads = async <T>(path: string): Promise<readonly T[]> => {
    const found = await connection.request<{ items?: T[] }>('GET', `${path}?labelSelector=${WORKLOAD_SELECTOR}`).catch((error: { status?: number }) => {
      if (error.status === 403) return undefined
      throw error
    })
    return found?.items ?? []
  }
  try {
    if (invocation.options.namespace !== undefined) await checkNamespace(connection, invocation.options.namespace)
    const lists = await Promise.all([...statusKinds].map((kind) => list(kind, collectionPaths(kind))))
    const classes = new Set(
      lists
        .find(({ kind }) => kind === 'GatewayClass')
        ?.items.flatMap(({ metadata, spec }) => (spec?.controllerName === CONTROLLER_NAME ? [metadata.name] : [])),
    )
    const objects = lists.flatMap(({ kind, items }) =>
      items.flatMap(({ metadata, spec, status = {} }) => {
        if (kind === 'GatewayClass' && !classes.has(metadata.name)) return []
        if (kind === 'Gateway' && !classes.has(spec?.gatewayClassName ?? '')) return []
        const own = ownEntries(status)
        // A route or policy without a Gateway of ours belongs to another controller.
        if (own === undefined) return []
        const { name, namespace } = metadata
        return [{ group: '', kind, ...(namespace !== undefined && { namespace }), name, status: own }]
      }),
    )
    const [deployments, pods] = await Promise.all([listWorkloads<Deployment>('/apis/apps/v1/deployments'), listWorkloads<Pod>('/api/v1/pods')])
    const isOurs = ({ metadata: { namespace, ownerReferences = [] } }: Deployment): boolean =>
      ownerReferences.some((owner) => objects.some((object) => object.kind === owner.kind && object.name === owner.name && object.namespace === namespace))
    return [...objects.map(describeObject), ...deployments.filter(isOurs).map((deployment) => describeDeployment(deployment, pods))]
  } catch (error) {
    throw explainUnreachable(error, kubeconfigOf(invocation))
  } finally {
    connection.close()
  }
}

/** A status with only our entries among those of several controllers; undefined when all are others'. */
function ownEntries(status: object): object | undefined {
  const { parents, ancestors, ...rest } = status as Record<'parents' | 'ancestors', { controllerName?: string }[] | undefined>
  const shared = parents ?? ancestors
  if (shared === undefined) return rest
  const own = shared.filter(({ controllerName }) => controllerName === CONTROLLER_NAME)
  return own.length === 0 && shared.length > 0 ? undefined : { ...rest, parents: own }
}
