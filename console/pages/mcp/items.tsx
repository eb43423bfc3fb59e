import { Badge, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty } from '../../ui/states.tsx'
import type { Kind } from './call.tsx'
import type { HiddenItem } from './client.ts'
import type { Item } from './item.ts'

/** Everything that an identity may see, and what it may not. */
export type Lists = Readonly<Record<Kind, readonly Item[]>> & { readonly hidden: readonly HiddenItem[] }

export const keyOf = (kind: Kind, { name, uri }: Item): string => (kind === 'resource' ? (uri ?? '') : (name ?? ''))

interface ItemsProps {
  readonly kind: Kind
  readonly lists: Lists
  /** Those of the token to compare with. */
  readonly other: Lists | undefined
  /** Names of the targets, which prefix the names of items. */
  readonly targets: readonly string[]
  readonly selected: string
  readonly onSelect: (item: Item) => void
}

export function Items({ kind, lists, other, targets, selected, onSelect }: ItemsProps) {
  const own = new Set(lists[kind].map((item) => keyOf(kind, item)))
  const theirs = other && new Set(other[kind].map((item) => keyOf(kind, item)))
  const all = [...lists[kind], ...(other?.[kind].filter((item) => !own.has(keyOf(kind, item))) ?? [])]
  return (
    <Panel title={`${kind[0]?.toUpperCase()}${kind.slice(1)}s`} aside={`${own.size}`}>
      {all.length === 0 ? (
        <Empty title={`No ${kind}s`} />
      ) : (
        <Scroll label={`List of ${kind}s`}>
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Origin</th>
                {theirs && <th>Visible to</th>}
                <th>Description</th>
              </tr>
            </thead>
            <tbody>
              {all.map((item) => {
                const key = keyOf(kind, item)
                return (
                  <tr key={key} class={`${kind} ${key}` === selected ? 'is-selected' : ''}>
                    <td>
                      <button type="button" class="quiet mono" onClick={() => onSelect(item)}>
                        {key}
                      </button>
                    </td>
                    <td>{originOf(key, targets) ?? '–'}</td>
                    {theirs && (
                      <td>
                        <Visible isVisible={own.has(key)} label="first token" /> <Visible isVisible={theirs.has(key)} label="second token" />
                      </td>
                    )}
                    <td class="wrap">{item.description}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  )
}

function Visible({ isVisible, label }: { readonly isVisible: boolean; readonly label: string }) {
  return <Badge tone={isVisible ? 'good' : 'bad'}>{`${label}: ${isVisible ? 'yes' : 'no'}`}</Badge>
}

/** The target whose name prefixes a name (`tickets_search`) or a URI (`documents+documents://readme`). A single target adds no prefix. */
function originOf(key: string, targets: readonly string[]): string | undefined {
  if (targets.length === 1) return targets[0]
  return targets.filter((target) => key.startsWith(`${target}_`) || key.startsWith(`${target}+`)).sort((a, b) => b.length - a.length)[0]
}
