import { CONTROLLER_NAME, SHADOWED } from '#api/names.ts'
import { isBad } from '../model/conditions.ts'
import type { Condition } from '../model/translation.ts'
import { isOwnCondition } from './merge.ts'

/** A condition of an object that turned bad or good, as an Event reports it. */
export interface Transition {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** Conditions that exist only while they are bad. */
const isOnlyWhileBad: ReadonlySet<string> = new Set(['PartiallyInvalid', SHADOWED])

interface Reference {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly sectionName?: string
}

interface Status {
  readonly conditions?: readonly Condition[]
  readonly listeners?: readonly { readonly name: string; readonly conditions?: readonly Condition[] }[]
  readonly parents?: readonly Entry[]
  readonly ancestors?: readonly Entry[]
}

interface Entry {
  readonly controllerName?: string
  readonly parentRef?: Reference
  readonly ancestorRef?: Reference
  readonly conditions?: readonly Condition[]
}

/**
 * Compares our conditions in two statuses of an object. A bad condition that is new, has another reason, or has another message for a newer
 * generation is a Warning; one that turned good is Normal. A new good condition is no transition, nor is a new Gateway or MCP server that waits for its pods.
 */
export function findTransitions(before: object | undefined, after: object): Transition[] {
  // CRDs of the Gateway API create Gateways with conditions of status Unknown, which are as if absent.
  const known = listConditions(before ?? {}).filter(({ condition }) => condition.status !== 'Unknown')
  const previous = new Map(known.map((placed) => [keyOf(placed), placed.condition]))
  const byText = new Map<string, { readonly transition: Transition; readonly places: string[] }>()
  for (const placed of listConditions(after)) {
    const type = judge(previous.get(keyOf(placed)), placed.condition)
    if (type === undefined) continue
    const { type: name, status, reason, message } = placed.condition
    const text = [type, name, status, reason, message].join('\u0000')
    const equal = byText.get(text)
    if (equal) equal.places.push(placed.place)
    else byText.set(text, { transition: { type, reason, message: `${name} is ${status}` }, places: [placed.place] })
    previous.delete(keyOf(placed))
  }
  // Such a condition turned good by its removal.
  const removed = [...previous].flatMap(([key, condition]) =>
    isBad(condition) && isOnlyWhileBad.has(condition.type) && hasPlace(after, key)
      ? [{ type: 'Normal' as const, reason: condition.reason, message: `${condition.type} is no longer True` }]
      : [],
  )
  return [
    ...[...byText].map(([text, { transition, places }]) => ({
      ...transition,
      message: `${transition.message}${describePlaces(places)}: ${text.slice(text.lastIndexOf('\u0000') + 1)}`,
    })),
    ...removed,
  ]
}

function judge(before: Condition | undefined, after: Condition): Transition['type'] | undefined {
  if (!isBad(after)) return before !== undefined && isBad(before) ? 'Normal' : undefined
  if (before === undefined || !isBad(before)) return isPending(after) && before === undefined ? undefined : 'Warning'
  if (before.reason !== after.reason) return isPending(after) ? undefined : 'Warning'
  return before.message !== after.message && before.observedGeneration !== after.observedGeneration ? 'Warning' : undefined
}

const isPending = ({ type, reason }: Condition): boolean => (type === 'Programmed' || type === 'ServersReady') && reason === 'Pending'

interface Placed {
  /** `of listener http`, `for Gateway ns/gw`; '' for the object itself. */
  readonly place: string
  readonly condition: Condition
}

const keyOf = ({ place, condition }: Placed): string => `${condition.type} ${place}`
const hasPlace = (status: object, key: string): boolean => listPlaces(status).some((place) => key.endsWith(` ${place}`))
const describePlaces = (places: readonly string[]): string => {
  const named = places.filter((place) => place !== '')
  if (named.length === 0) return ''
  return ` ${named.slice(0, 3).join(', ')}${named.length > 3 ? ` and ${named.length - 3} more` : ''}`
}

function listConditions(status: object): Placed[] {
  return listParts(status).flatMap(({ place, conditions = [] }) =>
    conditions.filter(({ type }) => isOwnCondition(type)).map((condition) => ({ place, condition })),
  )
}

const listPlaces = (status: object): string[] => listParts(status).map(({ place }) => place)

function listParts(status: Status): { readonly place: string; readonly conditions?: readonly Condition[] | undefined }[] {
  const entries = [...(status.parents ?? []), ...(status.ancestors ?? [])].filter(({ controllerName }) => controllerName === CONTROLLER_NAME)
  return [
    { place: '', conditions: status.conditions },
    ...(status.listeners ?? []).map(({ name, conditions }) => ({ place: `of listener ${name}`, conditions })),
    ...entries.map(({ parentRef, ancestorRef, conditions }) => ({ place: `for ${describeReference(parentRef ?? ancestorRef ?? {})}`, conditions })),
  ]
}

function describeReference({ kind = '', namespace, name = '', sectionName }: Reference): string {
  const object = namespace === undefined ? name : `${namespace}/${name}`
  return `${kind === '' ? '' : `${kind} `}${object}${sectionName === undefined ? '' : ` listener ${sectionName}`}`
}
