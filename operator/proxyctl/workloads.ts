import { GATEWAY_NAME_LABEL } from '../deploy/metadata.ts'
import type { Row } from './types.ts'

/** Fields of a Deployment that show whether a Gateway's data planes run. */
export interface Deployment {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly ownerReferences?: readonly { kind: string; name: string }[] }
  readonly spec?: { readonly replicas?: number }
  readonly status?: { readonly readyReplicas?: number; readonly conditions?: readonly Condition[] } | undefined
}

export interface Pod {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
  }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly {
      readonly name: string
      readonly ready?: boolean
      readonly state?: { readonly waiting?: { reason?: string; message?: string }; readonly running?: object; readonly terminated?: object } | undefined
    }[]
  }
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
}

/** Waiting reasons of a container that is starting normally. */
const starting: readonly string[] = ['ContainerCreating', 'PodInitializing']

/** Label selector of the Deployments and pods of Gateways. */
export const WORKLOAD_SELECTOR = encodeURIComponent(GATEWAY_NAME_LABEL)

/** Whether the data planes of a Gateway run: its status does not say (operator.md §4.2, Programmed waits for no pod). */
export function describeDeployment(deployment: Deployment, pods: readonly Pod[]): Row {
  const { name, namespace = '' } = deployment.metadata
  const own = pods.filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[GATEWAY_NAME_LABEL] === name && !metadata.deletionTimestamp)
  const wanted = deployment.spec?.replicas ?? 1
  const ready = deployment.status?.readyReplicas ?? 0
  const conditions = deployment.status?.conditions ?? []
  const failures = [
    ...conditions.flatMap(({ type, status, message = '' }) =>
      type === 'ReplicaFailure' && status === 'True'
        ? [`no pod can be made: ${message}`]
        : type === 'Progressing' && status === 'False'
          ? [`the rollout is stuck: ${message}`]
          : [],
    ),
    ...own.flatMap(failuresOf),
  ]
  const waiting = own.flatMap(({ metadata, status }) =>
    (status?.containerStatuses ?? []).flatMap(({ name: container, ready: isReady = false, state }) =>
      isReady || !state?.running ? [] : [`pod ${metadata.name}: container ${container} runs and is not ready; ${logsOf(metadata, container)} says why`],
    ),
  )
  const missing = ready < wanted ? [`${ready} of ${wanted} pods are ready`] : []
  const isFine = missing.length + failures.length === 0
  // Beside ready pods there may be one of the next version that does not start.
  const severity = isFine ? 'ok' : ready > 0 || wanted === 0 ? 'warning' : failures.length > 0 ? 'error' : 'pending'
  return { severity, kind: 'Deployment', namespace, name, conditions: isFine ? [] : [...missing, ...failures, ...waiting] }
}

const logsOf = ({ namespace, name }: Pod['metadata'], container: string): string => `kubectl -n ${namespace} logs ${name} -c ${container}`

function failuresOf({ metadata, status }: Pod): string[] {
  const { name } = metadata
  const unscheduled = status?.conditions?.find((condition) => condition.type === 'PodScheduled' && condition.status === 'False')
  if (unscheduled) return [`pod ${name}: no node takes it: ${unscheduled.message ?? ''}`]
  return (status?.containerStatuses ?? []).flatMap(({ name: container, state }) => {
    const { reason = '', message = '' } = state?.waiting ?? {}
    if (state?.terminated || reason === 'CrashLoopBackOff')
      return [`pod ${name}: container ${container} ends again and again; ${logsOf(metadata, container)} --previous says why`]
    return reason === '' || starting.includes(reason) ? [] : [`pod ${name}: container ${container}: ${reason}${message === '' ? '' : `: ${message}`}`]
  })
}
