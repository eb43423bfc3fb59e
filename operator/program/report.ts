import type { Bind, Listener, Route } from '#gen/config/types.ts'
import { isBad } from '../model/conditions.ts'
import type { Condition, ObjectStatus, Translation } from '../model/translation.ts'
import type { Place } from '../source/reader.ts'

/** Output of directory mode, one JSON object per line (README.md). */
export type ReportEvent =
  | { readonly event: 'listening'; readonly address: string }
  | { readonly event: 'config'; readonly gateways: readonly GatewaySummary[] }
  | ({ readonly event: 'error'; readonly message: string } & Partial<Place>)
  | ({ readonly event: 'condition'; readonly isConsequence: boolean } & ConditionReport & Partial<Place>)
  | ({ readonly event: 'warning'; readonly kind: string; readonly namespace: string; readonly name: string; readonly message: string } & Partial<Place>)
  | { readonly event: 'solved'; readonly problem: string }

export interface GatewaySummary {
  readonly namespace: string
  readonly name: string
  readonly listeners: readonly {
    readonly name: string
    readonly port: number
    readonly protocol: string
    readonly hostname?: string
    readonly routes: number
  }[]
  /** What its ProxyParameters say: absent if it has none. */
  readonly settings?: SettingsFiles
}

/** Files of the settings of a Gateway. */
export interface SettingsFiles {
  readonly config: string
  /** Lines `NAME="value"`, for `node --env-file`. */
  readonly env: string
  /** Changes with the content. */
  readonly version: string
}

export interface ConditionReport {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** The listeners of each Gateway, with their number of rules, and the files with its settings. */
export function summarizeGateways({ gateways }: Translation, settings: ReadonlyMap<string, SettingsFiles>): GatewaySummary[] {
  return [...gateways].map(([key, messages]) => {
    const [namespace = '', name = ''] = key.split('/')
    const of = <T>(...kinds: string[]): T[] => messages.flatMap(({ kind, message }) => (kinds.includes(kind) ? [message as T] : []))
    const ports = new Map(of<Bind>('bind').map((bind) => [bind.key, bind.port]))
    const rules = new Map<string, number>()
    for (const { listeners } of of<Route>('route', 'tcpRoute')) for (const listener of listeners) rules.set(listener, (rules.get(listener) ?? 0) + 1)
    const listeners = of<Listener>('listener').map((listener) => ({
      name: listener.name,
      port: ports.get(listener.bind) ?? 0,
      protocol: listener.protocol,
      ...(listener.hostname === undefined ? {} : { hostname: listener.hostname }),
      routes: rules.get(listener.key) ?? 0,
    }))
    const files = settings.get(key)
    return { namespace, name, listeners, ...(files && { settings: files }) }
  })
}

/** All conditions that report a problem, including Accepted with reason PartiallyValid. */
export function findTroubles(statuses: readonly ObjectStatus[]): ConditionReport[] {
  return statuses.flatMap(({ kind, namespace = '', name, status }) =>
    conditionsOf(status).flatMap(({ at, condition }) => {
      const { type, reason, message } = condition
      return !isBad(condition) ? [] : [{ kind, namespace, name: at === '' ? name : `${name}/${at}`, type, status: condition.status, reason, message }]
    }),
  )
}

interface PlacedCondition {
  /** Listener that it is about; '' for the object itself. */
  readonly at: string
  readonly condition: Condition
}

/** Conditions wherever Gateway API and our kinds put them: on the object, on its listeners, per parent, per ancestor. */
function conditionsOf(status: object): PlacedCondition[] {
  const {
    conditions = [],
    listeners = [],
    parents = [],
    ancestors = [],
  } = status as {
    conditions?: Condition[]
    listeners?: { name: string; conditions?: Condition[] }[]
    parents?: { conditions?: Condition[] }[]
    ancestors?: { conditions?: Condition[] }[]
  }
  return [
    ...conditions.map((condition) => ({ at: '', condition })),
    ...listeners.flatMap(({ name, conditions: own = [] }) => own.map((condition) => ({ at: name, condition }))),
    ...[...parents, ...ancestors].flatMap(({ conditions: own = [] }) => own.map((condition) => ({ at: '', condition }))),
  ]
}
