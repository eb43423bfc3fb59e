import { isJsonObject, type JsonObject } from '../json/index.ts'

/** Something in a tool that a person should look at. */
export type Suspicion = 'HiddenCharacters' | 'Instructions'

/** Characters that are searched in one go. Longer definitions are suspicious, because a search of all of them would delay requests. */
const MAX_CHARACTERS = 64 * 1024

/**
 * Characters that people do not see, and models read: tags, bidirectional controls, zero width characters, variation selectors (but the one for
 * emoji), and control characters. A zero width joiner is part of emoji.
 */
const HIDDEN = /(?!\t|\n|\r|\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Variation_Selector}]|(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})\u200d/u

/** Phrases by which descriptions instruct models beyond the use of the tool. Each takes time linear in the text. */
const INSTRUCTIONS: readonly RegExp[] = [
  /\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+|every\s+)*(?:previous|prior|above|earlier|other|system|existing|safety)\b/i,
  /\b(?:do\s+not|don['’]t|never|without)\s+(?:tell|inform|mention|notify|reveal|telling|informing|mentioning|notifying|alert|alerting)\b.{0,40}\buser\b/i,
  /<\/?\s*(?:important|system|instructions?|critical|secret|hidden|admin)\s*>/i,
  /\b(?:system\s+prompt|hidden\s+instructions?|developer\s+message|jailbreak)\b/i,
  /\b(?:before|after|instead\s+of)\s+(?:using|calling|running|invoking)\s+(?:any|every|all|this|that|the)\s+(?:other\s+)?tools?\b/i,
  /\byou\s+(?:must|should|have\s+to|need\s+to|are\s+required\s+to)\s+(?:always\s+|first\s+|also\s+)*(?:call|read|send|include|pass|invoke|use|execute|forward|upload)\b/i,
  /(?:~|\/root|\/home\/[^/\s]{1,64})\/\.(?:ssh|aws|kube|config|env|netrc|gnupg)\b|\bid_(?:rsa|ed25519)\b/i,
]

/** Searches the texts of a tool: its name, title, description and those in its schemas. */
export function findSuspicions(tool: JsonObject): Suspicion[] {
  const text = textOf(tool)
  const found: Suspicion[] = []
  if (HIDDEN.test(text)) found.push('HiddenCharacters')
  if (text.length >= MAX_CHARACTERS || INSTRUCTIONS.some((pattern) => pattern.test(text))) found.push('Instructions')
  return found
}

/** All strings and names of members, one per line. */
function textOf(tool: JsonObject): string {
  const pieces: string[] = []
  let size = 0
  const open: unknown[] = [tool['outputSchema'], tool['inputSchema'], tool['annotations'], tool['description'], tool['title'], tool['name']]
  for (let value = open.pop(); (open.length > 0 || value !== undefined) && size < MAX_CHARACTERS; value = open.pop()) {
    if (typeof value === 'string') {
      pieces.push(value.slice(0, MAX_CHARACTERS))
      size += value.length
    } else if (Array.isArray(value)) for (const item of value as unknown[]) open.push(item)
    else if (isJsonObject(value))
      for (const [key, item] of Object.entries(value)) {
        pieces.push(key)
        size += key.length
        open.push(item)
      }
  }
  return pieces.join('\n').slice(0, MAX_CHARACTERS)
}

/** Letters of other scripts, and digits, that look like Latin letters. */
const LOOK_ALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ['a', 'аα4'],
    ['b', 'ьβ'],
    ['c', 'сϲ'],
    ['d', 'ԁ'],
    ['e', 'еεё3'],
    ['g', 'ɡ'],
    ['h', 'һ'],
    ['i', 'іιıl1|!'],
    ['j', 'јϳ'],
    ['k', 'кκ'],
    ['m', 'м'],
    ['n', 'пη'],
    ['o', 'оο0σ'],
    ['p', 'рρ'],
    ['q', 'ԛ'],
    ['r', 'г'],
    ['s', 'ѕ5$'],
    ['t', 'тτ7'],
    ['u', 'υս'],
    ['v', 'ѵν'],
    ['w', 'ԝω'],
    ['x', 'хχ'],
    ['y', 'уγ'],
  ].flatMap(([letter = '', others = '']) => Array.from(others).map((other) => [other, letter])),
)

/** Names that people or models may confuse have one skeleton: case, separators, accents and letters that look alike do not matter. */
export function skeletonOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}|!$]/gu, '')
  return Array.from(plain, (character) => LOOK_ALIKES[character] ?? character)
    .join('')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w')
}
