import { evalBool, type Program } from '#api/cel/index.ts'
import type { JsonObject } from '#api/json/index.ts'
import type { A2ABackend, A2ASkill } from '#gen/config/types.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { CardError, withSkills } from './card.ts'
import { compileSigner, type SignCard } from './sign.ts'

/** What a backend says about its agent, with the private key of `cardSigning`. */
export interface AgentConfig {
  readonly backend: A2ABackend
  /** PEM; undefined if the Secret does not resolve. */
  readonly signingKey: string | undefined
}

/** How cards of an agent change beyond their URLs (mcp.md §14). */
export interface Agent {
  /** The card is not the same for all users. */
  readonly isPersonal: boolean
  /** The card for a client: with its skills, and signed. Returns the card itself if nothing changes. Rejects with a CardError. */
  finishCard(card: JsonObject, exchange: Exchange): Promise<JsonObject>
}

interface SkillRule {
  readonly matches: (id: string) => boolean
  readonly when: Program | undefined
}

const compiled = new WeakMap<A2ABackend, { readonly key: string | undefined; readonly agent: Agent | undefined }>()

/** The compiled agent; undefined if its cards change no further. Compiled once for each version of the backend. */
export function agentOf(config: AgentConfig | undefined): Agent | undefined {
  if (config === undefined) return undefined
  const { backend, signingKey } = config
  const known = compiled.get(backend)
  if (known !== undefined && known.key === signingKey) return known.agent
  const agent = compileAgent(config)
  compiled.set(backend, { key: signingKey, agent })
  return agent
}

function compileAgent({ backend: { skills, cardSigning }, signingKey }: AgentConfig): Agent | undefined {
  if (skills === undefined && cardSigning === undefined) return undefined
  const rules = skills?.map(compileSkill)
  let sign: SignCard | undefined
  let problem: string | undefined
  try {
    if (cardSigning !== undefined && signingKey === undefined) throw new Error('the Secret of cardSigning does not resolve')
    sign = cardSigning && compileSigner(cardSigning, signingKey ?? '')
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error)
  }
  return {
    isPersonal: rules?.some(({ when }) => when !== undefined) === true,
    async finishCard(card, exchange) {
      if (problem !== undefined) throw new CardError(problem)
      const shown = rules === undefined ? card : withSkills(card, (id) => isShown(rules, id, exchange))
      return sign === undefined ? shown : sign(shown)
    },
  }
}

const compileSkill = ({ id, when }: A2ASkill): SkillRule => ({
  matches: patternOf(id),
  when: when === undefined ? undefined : compileExpression(when, 'request'),
})

/** `*` stands for any characters. */
function patternOf(text: string): (id: string) => boolean {
  const parts = text.split('*')
  const [first = '', ...rest] = parts
  const last = rest.pop()
  if (last === undefined) return (id) => id === text
  return (id) => {
    if (!id.startsWith(first) || !id.endsWith(last)) return false
    const end = id.length - last.length
    let at = first.length
    for (const part of rest) {
      const found = id.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return at <= end
  }
}

const isShown = (rules: readonly SkillRule[], id: string, exchange: Exchange): boolean => {
  const view = new ExchangeView(exchange)
  return rules.some(({ matches, when }) => matches(id) && (when === undefined || evalBool(when, view)))
}
