import { isDeepStrictEqual } from 'node:util'
import { CONTROLLER_NAME, GATEWAY_GROUP, SHADOWED, type ConditionType } from '#api/names.ts'

type Json = Record<string, unknown>

interface LiveCondition extends Json {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime?: string
}

/** One controller's part of a shared status: of a route's `parents`, of a policy's `ancestors`. */
interface Entry extends Json {
  readonly controllerName?: string
  readonly parentRef?: object
  readonly ancestorRef?: object
  readonly conditions?: readonly LiveCondition[]
}

interface ListenerEntry extends Json {
  readonly name: string
  readonly conditions?: readonly LiveCondition[]
}

const ownTypes: Readonly<Record<ConditionType, true>> = {
  Accepted: true,
  Programmed: true,
  ResolvedRefs: true,
  Conflicted: true,
  PartiallyInvalid: true,
  InsecureFrontendValidationMode: true,
  Attached: true,
  SessionsShared: true,
  ToolsApproved: true,
  ServersReady: true,
  StatusSummarized: true,
  [SHADOWED]: true,
}

/** Whether the operator writes conditions of this type. */
export const isOwnCondition = (type: string): boolean => Object.hasOwn(ownTypes, type)

/** Fields that are ours as a whole. They are removed if translation does not set them. */
const ownFields: readonly string[] = ['listeners', 'addresses', 'attachedListenerSets', 'supportedFeatures', 'plugins', 'rollouts']

/**
 * Merges our part into the status of an object. Returns the fields of `status` to write (null: to remove), or undefined if nothing
 * differs. Conditions, `parents` and `ancestors` of other controllers stay.
 *
 * @param live the status as stored
 * @param ours the status of translation, without transition times
 * @param now RFC 3339 with seconds, for conditions whose status changes
 */
export function mergeStatus(live: object | undefined, ours: object, now: string): Json | undefined {
  const stored: Json = { ...live }
  const patch: Json = {}
  const wanted = toJson(ours)
  for (const [field, value] of Object.entries(wanted)) {
    const merged = mergeField(field, stored[field], value, now)
    if (!isDeepStrictEqual(stored[field], merged)) patch[field] = merged
  }
  for (const field of ownFields) if (stored[field] !== undefined && !Object.hasOwn(wanted, field)) patch[field] = null
  return Object.keys(patch).length > 0 ? patch : undefined
}

const toJson = (value: object): Json => JSON.parse(JSON.stringify(value)) as Json

function mergeField(field: string, stored: unknown, ours: unknown, now: string): unknown {
  switch (field) {
    case 'conditions':
      return mergeConditions(listOf(stored) as LiveCondition[], listOf(ours) as LiveCondition[], now)
    case 'listeners':
      return mergeListeners(listOf(stored) as ListenerEntry[], listOf(ours) as ListenerEntry[], now)
    case 'parents':
    case 'ancestors':
      return mergeEntries(listOf(stored), listOf(ours), now)
    default:
      return ours
  }
}

const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])

/** Conditions keep their places, so that equal ones compare equal. */
function mergeConditions(stored: readonly LiveCondition[], ours: readonly LiveCondition[], now: string): LiveCondition[] {
  const next = new Map(ours.map((condition) => [condition.type, condition]))
  const kept = stored.flatMap((condition) => {
    const own = next.get(condition.type)
    next.delete(condition.type)
    if (!own) return isOwnCondition(condition.type) ? [] : [condition]
    const isSame = own.status === condition.status && condition.lastTransitionTime !== undefined
    return [{ ...own, lastTransitionTime: isSame ? condition.lastTransitionTime : now }]
  })
  return [...kept, ...next.values().map((condition) => ({ ...condition, lastTransitionTime: now }))]
}

function mergeListeners(stored: readonly ListenerEntry[], ours: readonly ListenerEntry[], now: string): ListenerEntry[] {
  const before = new Map(stored.map((entry) => [entry.name, entry]))
  return ours.map((entry) => ({ ...entry, conditions: mergeConditions(before.get(entry.name)?.conditions ?? [], entry.conditions ?? [], now) }))
}

function mergeEntries(stored: readonly Entry[], ours: readonly Entry[], now: string): readonly Entry[] {
  const isOwn = ({ controllerName }: Entry): boolean => controllerName === CONTROLLER_NAME
  const before = stored.filter(isOwn)
  const after = ours.map(fillReference).map((entry) => {
    const previous = before.find((each) => isDeepStrictEqual(refOf(each), refOf(entry)))
    return { ...entry, conditions: mergeConditions(previous?.conditions ?? [], entry.conditions ?? [], now) }
  })
  // Other controllers may order the entries differently: the order alone causes no write.
  return isDeepStrictEqual(before, after) ? stored : [...stored.filter((entry) => !isOwn(entry)), ...after]
}

/** Fills in the group and kind that a reference omits, as the CRDs do. Without them, the stored reference would always look changed. */
function fillReference(entry: Entry): Entry {
  const fill = (ref: object): object => ({ group: GATEWAY_GROUP, kind: 'Gateway', ...ref })
  return { ...entry, ...(entry.parentRef ? { parentRef: fill(entry.parentRef) } : {}), ...(entry.ancestorRef ? { ancestorRef: fill(entry.ancestorRef) } : {}) }
}

const refOf = ({ parentRef, ancestorRef }: Entry): object | undefined => parentRef ?? ancestorRef
