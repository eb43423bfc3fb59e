import { GATEWAY_GROUP } from '#api/names.ts'
import type { Gateway, ListenerSet } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { compareAge } from '../../source/snapshot.ts'
import { condition, fault, type Fault } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import { listenerStatus, notAcceptedOf, notProgrammedOf, readListener, type ListenerState } from './listener.ts'
import { admitsNamespace } from '../../model/selectors.ts'
import type { FrontendSource } from './tls.ts'
import type { ObjectStatus } from '../../model/translation.ts'

/** A ListenerSet whose parent is a Gateway of this controller. */
export interface ListenerSetState {
  readonly set: ListenerSet
  readonly key: string
  /** Why the Gateway rejects it; a rejected one has no listeners. */
  readonly refused?: Fault
  readonly listeners: readonly ListenerState[]
  /** Known after conflicts have been found: some listener is good. */
  isAccepted(): boolean
}

/** Key of the Gateway that a ListenerSet names as its parent; undefined if the parent is of another kind. */
export function findParentGateway({ metadata, spec: { parentRef } }: ListenerSet): string | undefined {
  const isGateway = parentRef.group === GATEWAY_GROUP && parentRef.kind === 'Gateway'
  return isGateway ? `${parentRef.namespace ?? metadata.namespace}/${parentRef.name}` : undefined
}

/** Reads the ListenerSets of a Gateway, the strongest first. */
export function readListenerSets(context: Context, gateway: Gateway, sets: readonly ListenerSet[], frontend: FrontendSource): ListenerSetState[] {
  return sets.toSorted(compareAge).map((set) => {
    const rule = gateway.spec.allowedListeners?.namespaces ?? { from: 'None' as const }
    const isAllowed = admitsNamespace(context.snapshot, rule, gateway.metadata.namespace, set.metadata.namespace)
    const listeners = isAllowed ? set.spec.listeners.map((spec) => readListener(context, set, spec, frontend)) : []
    return {
      set,
      key: keyOf(set),
      listeners,
      isAccepted: () => listeners.some((listener) => !notProgrammedOf(listener)),
      ...(isAllowed
        ? {}
        : {
            refused: fault(
              'NotAllowed',
              `spec.allowedListeners of Gateway ${keyOf(gateway)} does not admit ListenerSets of namespace ${set.metadata.namespace}`,
              'PX1016',
            ),
          }),
    }
  })
}

export function listenerSetStatus(state: ListenerSetState): ObjectStatus {
  const { generation, namespace, name } = state.set.metadata
  const entry = { group: GATEWAY_GROUP, kind: 'ListenerSet', namespace, name }
  const { refused } = state
  if (refused) {
    return {
      ...entry,
      status: {
        conditions: [
          condition('Accepted', false, refused.reason, refused.message, generation),
          condition('Programmed', false, refused.reason, refused.message, generation),
        ],
      },
    }
  }
  const faulty = state.listeners.flatMap((listener) => {
    const cause = notAcceptedOf(listener) ?? notProgrammedOf(listener)
    return cause ? [`${listener.spec.name}: ${cause.message}`] : []
  })
  const isAccepted = state.isAccepted()
  const message = `Some listeners are not accepted: ${faulty.join('; ')}`
  return {
    ...entry,
    status: {
      conditions: [
        faulty.length === 0
          ? condition('Accepted', true, 'Accepted', 'Resource accepted', generation)
          : condition('Accepted', isAccepted, 'ListenersNotValid', message, generation),
        isAccepted
          ? condition('Programmed', true, 'Programmed', 'Resource programmed', generation)
          : condition('Programmed', false, 'ListenersNotValid', message, generation),
      ],
      listeners: state.listeners.map(listenerStatus),
    },
  }
}
