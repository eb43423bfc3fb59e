import { shapes } from './shapes.ts'

/** One field of a Kubernetes type. */
export interface Field {
  /** Type of the value, or of each item or map value: `string`, `integer`, `boolean`, `number`, `quantity`, `intstr`, or the name of a shape. */
  readonly type: string
  readonly container: 'list' | 'map' | 'none'
  /** List items with equal values of this field are one item. */
  readonly mergeKey?: string
  /** Whether the list may have items without a merge key. */
  readonly isKeyOptional: boolean
  /** Scalar lists: whether a patch adds to the list. */
  readonly isUnion: boolean
  /** Maps: whether a patch replaces the map. */
  readonly isReplaced: boolean
}

/** Fields by name. Undefined: free-form. */
export type Shape = ReadonlyMap<string, Field>

/** Part 3 merges tolerations by key, where Kubernetes replaces the list; a toleration without key tolerates every taint. */
const ownMergeKeys: Readonly<Record<string, string>> = { 'PodSpec.tolerations': 'key' }

const cache = new Map<string, Shape | undefined>()

/** The shape called `name`; undefined for scalars and free-form objects. */
export function findShape(name: string): Shape | undefined {
  if (!cache.has(name)) cache.set(name, parseShape(name, shapes[name]))
  return cache.get(name)
}

function parseShape(name: string, text: string | undefined): Shape | undefined {
  if (!text) return undefined
  return new Map(text.split(' ').map((word) => parseField(name, word)))
}

function parseField(owner: string, word: string): [string, Field] {
  const [, field = '', open = '', type = '', mergeKey, strategies = ''] = /^(\w+):([[{]?)(\w+)[\]}]?(?:@(\w+))?(?:!([\w,]+))?$/.exec(word) ?? []
  if (field === '') throw new Error(`shape ${owner}: cannot read ${word}`)
  const own = ownMergeKeys[`${owner}.${field}`]
  const isMerged = strategies.split(',').includes('merge')
  const key = own ?? (isMerged ? mergeKey : undefined)
  return [
    field,
    {
      type,
      container: open === '[' ? 'list' : open === '{' ? 'map' : 'none',
      ...(key === undefined ? {} : { mergeKey: key }),
      isKeyOptional: own !== undefined,
      isUnion: isMerged && mergeKey === undefined,
      isReplaced: strategies.split(',').includes('replace'),
    },
  ]
}
