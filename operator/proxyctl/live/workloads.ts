import { GATEWAY_NAME_LABEL } from '../../deploy/metadata.ts'
import { describeReady, readRollout, type RunningDeployment } from '../../deploy/rollout.ts'
import type { Row } from '../types.ts'

/** Fields of a Deployment that show whether a Gateway's data planes run. */
export interface Deployment extends RunningDeployment {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly ownerReferences?: readonly { kind: string; name: string }[] }
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

/** Reports whether the data planes of a Gateway run, with the causes in its pods, which the status of the Gateway does not hold. */
export function describeDeployment(deployment: Deployment, pods: readonly Pod[]): Row {
  const { name, namespace = '' } = deployment.metadata
  const own = pods.filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[GATEWAY_NAME_LABEL] === name && !metadata.deletionTimestamp)
  const rollout = readRollout(deployment)
  const { ready, wanted } = rollout
  const failures = [...rollout.failures, ...own.flatMap(failuresOf)]
  const waiting = own.flatMap(({ metadata, status }) =>
    (status?.containerStatuses ?? []).flatMap(({ name: container, ready: isReady = false, state }) =>
      isReady || !state?.running ? [] : [`pod ${metadata.name}: container ${container} runs and is not ready; ${logsOf(metadata, container)} says why`],
    ),
  )
  const missing = ready < wanted ? [describeReady(rollout)] : []
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
