import type { Target } from '../common/types.ts'
import type { TargetRules } from './types.ts'

/** The vendor, line and version of a model, read from its id. */
export interface Family {
  readonly vendor: Vendor
  /** `opus`, `sonnet` and so on; empty if the vendor has one line. */
  readonly line: string
  /** 4.5 is 405. NaN if the id has none; Infinity for the latest: `gemini-flash-latest`. */
  readonly version: number
}

type Vendor =
  | 'gpt'
  | 'o'
  | 'claude'
  | 'gemini'
  | 'nova'
  | 'titan'
  | 'llama'
  | 'mistral'
  | 'command'
  | 'deepseek'
  | 'kimi'
  | 'glm'
  | 'minimax'
  | 'qwen'
  | 'grok'
  | 'other'

/** Where an id begins: behind a path, a region, the name of a vendor, or the mark of a fine-tuned model. */
const START = '(?:^|[/.:])'
const patterns: readonly (readonly [Vendor, RegExp])[] = [
  [
    'claude',
    new RegExp(
      `${START}claude-(?:v?(?<major>\\d+)(?:[-.](?<minor>\\d{1,2}))?(?!\\d)-?)?(?<line>[a-z]+)?(?:-v?(?<major2>\\d{1,2})(?:[-.](?<minor2>\\d{1,2}))?(?!\\d))?`,
    ),
  ],
  // gpt-oss is a model of open weights, served by others.
  ['gpt', new RegExp(`${START}(?:chat)?gpt-(?!oss)(?<major>\\d+)?(?:\\.(?<minor>\\d+))?(?:-(?=chat))?(?<line>[a-z]*)`)],
  ['o', new RegExp(`${START}(?<line>o)(?<major>\\d)(?![a-z\\d])`)],
  ['gemini', new RegExp(`${START}gemini-(?<major>\\d+)?(?:\\.(?<minor>\\d+))?`)],
  ['nova', new RegExp(`${START}nova-(?<major>\\d+)?`)],
  ['titan', new RegExp(`${START}titan-`)],
  ['llama', new RegExp(`${START}(?:meta-)?llama-?(?<major>\\d+)?(?:[-.](?<minor>\\d{1,2})(?!\\d|b))?`)],
  ['mistral', new RegExp(`${START}(?:mistral|ministral|magistral|codestral|devstral|pixtral|mixtral|open-mi[sx]tral)`)],
  ['command', new RegExp(`${START}command-`)],
  ['deepseek', /deepseek/],
  ['kimi', /kimi|moonshot/],
  ['glm', /glm-/],
  ['minimax', /minimax/],
  ['qwen', /qwen/],
  ['grok', new RegExp(`${START}grok-(?<major>\\d+)?(?:[-.](?<minor>\\d{1,2})(?!\\d))?`)],
]

/** Models whose family is kept. Clients choose the model, so the number is bounded. */
const MAX_MODELS = 1000
const known = new Map<string, Family>()

/**
 * Reads the family of a model.
 *
 * @example
 * familyOf('us.anthropic.claude-opus-4-7-v1:0') // {vendor: 'claude', line: 'opus', version: 407}
 */
export function familyOf(model: string): Family {
  const found = known.get(model)
  if (found !== undefined) return found
  const family = readFamily(model.toLowerCase())
  if (known.size >= MAX_MODELS) known.clear()
  known.set(model, family)
  return family
}

function readFamily(id: string): Family {
  for (const [vendor, pattern] of patterns) {
    const found = pattern.exec(id)
    if (found === null) continue
    const { line = '', major, minor, major2, minor2 } = found.groups ?? {}
    // Azure writes 3.5 as 35.
    if (major === '35') return { vendor, line, version: 305 }
    const first = major ?? major2
    return {
      vendor,
      line,
      version: first === undefined ? (id.endsWith('-latest') ? Infinity : NaN) : Number(first) * 100 + Number((major === undefined ? minor2 : minor) ?? 0),
    }
  }
  return { vendor: 'other', line: '', version: NaN }
}

/** Whether OpenAI itself serves a model. Others are those of servers that implement its API. */
export function isOpenaiModel(model: string): boolean {
  const { vendor } = familyOf(model)
  return vendor === 'gpt' || vendor === 'o'
}

/** What a family of models demands in place of its target. */
interface FamilyRow {
  readonly vendor: Vendor
  /** Versions from `from` on, and below `until`. */
  readonly from: number
  readonly until: number
  readonly lines?: RegExp
  readonly targets: readonly Target[]
  readonly change: (rules: TargetRules) => Partial<TargetRules>
  readonly source: string
}

const claudes: readonly Target[] = ['anthropic', 'vertexClaude', 'converse']
const chats: readonly Target[] = ['openai', 'azure', 'compatible']
const openais: readonly Target[] = [...chats, 'responses']

/** Rows apply in order; a later one replaces cells of earlier ones. Checked 2026-11-28. */
export const families: readonly FamilyRow[] = [
  {
    vendor: 'gpt',
    from: 0,
    until: Infinity,
    targets: chats,
    change: ({ roles }) => ({ roles: { ...roles, hasDeveloper: true }, tokenLimit: 'max_completion_tokens' }),
    source: 'platform.openai.com/docs/api-reference/chat',
  },
  {
    vendor: 'gpt',
    from: 0,
    until: 500,
    targets: chats,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, efforts: [] } }),
    source: 'AAswordman/Operit#1048',
  },
  {
    vendor: 'gpt',
    from: 500,
    until: 501,
    targets: chats,
    change: ({ reasoning }) => ({
      reasoning: { ...reasoning, efforts: ['minimal', 'low', 'medium', 'high'] },
      stops: { max: 0, takesBlank: true },
    }),
    source: 'litellm#15244',
  },
  {
    vendor: 'gpt',
    from: 501,
    until: 505,
    targets: chats,
    change: ({ reasoning }) => ({
      reasoning: { ...reasoning, efforts: ['none', 'low', 'medium', 'high'] },
      stops: { max: 0, takesBlank: true },
    }),
    source: 'vercel/ai#10932',
  },
  {
    vendor: 'gpt',
    from: 502,
    until: 505,
    targets: chats,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh'], withTools: 'absent' } }),
    source: 'openai/openai-openapi#541, livekit/agents#5088',
  },
  {
    vendor: 'gpt',
    from: 505,
    until: 600,
    targets: chats,
    change: ({ reasoning }) => ({
      reasoning: { ...reasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh'], withTools: 'none' },
      stops: { max: 0, takesBlank: true },
    }),
    source: 'BerriAI/litellm#34569',
  },
  {
    vendor: 'gpt',
    from: 600,
    until: Infinity,
    targets: chats,
    change: ({ reasoning }) => ({
      reasoning: { ...reasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'], withTools: 'none' },
      stops: { max: 0, takesBlank: true },
    }),
    source: '@ai-sdk/openai 3.0.141',
  },
  {
    vendor: 'o',
    from: 0,
    until: Infinity,
    targets: chats,
    change: ({ reasoning, roles }) => ({
      roles: { ...roles, hasDeveloper: true },
      tokenLimit: 'max_completion_tokens',
      reasoning: { ...reasoning, efforts: ['low', 'medium', 'high'] },
      stops: { max: 0, takesBlank: true },
    }),
    source: 'openai 6.49.0 (types)',
  },
  ...(
    [
      ['gpt', 500, 501, 'always', '@ai-sdk/openai 3.0.141'],
      ['gpt', 501, 505, 'reasoning', 'vercel/ai#10932'],
      ['gpt', 505, Infinity, 'always', 'BerriAI/litellm#34569'],
      ['o', 0, Infinity, 'always', '@ai-sdk/openai 3.0.141'],
    ] as const
  ).map(([vendor, from, until, isFixed, source]): FamilyRow => ({
    vendor,
    from,
    until,
    targets: openais,
    change: ({ sampling }) => ({ sampling: { ...sampling, isFixed } }),
    source,
  })),
  {
    vendor: 'gpt',
    from: 500,
    until: 501,
    lines: /^chat/,
    targets: openais,
    change: ({ reasoning, sampling }) => ({
      reasoning: { ...reasoning, efforts: [] },
      sampling: { ...sampling, isFixed: 'never' },
      stops: { max: 4, takesBlank: true },
    }),
    source: '@ai-sdk/openai 3.0.141',
  },
  {
    vendor: 'mistral',
    from: 0,
    until: Infinity,
    targets: ['compatible', 'converse'],
    change: ({ blanks }) => ({ ids: { pattern: /^[a-zA-Z0-9]{9}$/, max: 9, isUnique: true }, blanks: { ...blanks, isDropped: true } }),
    source: 'karthink/gptel#1203',
  },
  {
    vendor: 'mistral',
    from: 0,
    until: Infinity,
    targets: ['compatible'],
    change: ({ roles, reasoning }) => ({
      roles: { ...roles, takesUserAfterResults: false, prefill: 'prefix' },
      reasoning: { ...reasoning, history: 'none' },
    }),
    source: 'NousResearch/hermes-agent#84944, 0xPlaygrounds/rig#1130, @mistralai/mistralai 2.7.0',
  },
  {
    vendor: 'grok',
    from: 400,
    until: Infinity,
    targets: ['compatible'],
    change: () => ({ drops: ['presence_penalty', 'frequency_penalty'], stops: { max: 0, takesBlank: true } }),
    source: '@ai-sdk/xai 3.0.138, docs.x.ai (reasoning models)',
  },
  {
    vendor: 'llama',
    from: 0,
    until: Infinity,
    targets: ['converse'],
    change: ({ roles }) => ({ roles: { ...roles, prefill: 'rejected' } }),
    source: 'i-am-bee/beeai-framework#753',
  },
  {
    vendor: 'claude',
    from: 406,
    until: Infinity,
    targets: claudes,
    change: ({ roles }) => ({ roles: { ...roles, prefill: 'rejected' } }),
    source: 'vybestack/llxprt-code#3695, NousResearch/hermes-agent#101401',
  },
  ...(['deepseek', 'kimi', 'glm', 'minimax', 'qwen'] as const).map((vendor): FamilyRow => ({
    vendor,
    from: 0,
    until: Infinity,
    targets: ['compatible', 'azure', 'vertex'],
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, history: 'text' } }),
    source: 'danny-avila/LibreChat#12836',
  })),
  {
    vendor: 'claude',
    from: 405,
    until: Infinity,
    targets: ['converse'],
    change: ({ cache }) => ({ cache: { ...cache, hasTtl: true } }),
    source: '@aws-sdk/client-bedrock-runtime 3.1164.0',
  },
  {
    vendor: 'claude',
    from: 0,
    until: 405,
    targets: ['anthropic', 'vertexClaude'],
    change: ({ schema }) => ({ schema: { ...schema, hasStrict: false } }),
    source: '@anthropic-ai/sdk 1.14.0',
  },
  {
    vendor: 'claude',
    from: 405,
    until: 407,
    targets: ['converse'],
    change: ({ schema }) => ({ schema: { ...schema, hasStrict: true } }),
    source: '@aws-sdk/client-bedrock-runtime 3.1164.0',
  },
  {
    vendor: 'claude',
    from: 408,
    until: Infinity,
    targets: ['anthropic', 'vertexClaude'],
    change: ({ roles }) => ({ roles: { ...roles, late: 'inPlace' } }),
    source: 'BerriAI/litellm#33807',
  },
  {
    vendor: 'claude',
    from: 0,
    until: 307,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, hasBudget: false } }),
    source: 'docs.claude.com, extended thinking',
  },
  {
    vendor: 'claude',
    from: 0,
    until: 406,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, efforts: [] } }),
    source: '@anthropic-ai/sdk 1.14.0',
  },
  {
    vendor: 'claude',
    from: 401,
    until: Infinity,
    targets: claudes,
    change: ({ sampling }) => ({ sampling: { ...sampling, takesBoth: false } }),
    source: 'aws-samples/bedrock-access-gateway#238',
  },
  {
    vendor: 'claude',
    from: 405,
    until: 406,
    lines: /opus/,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, efforts: ['low', 'medium', 'high'] } }),
    source: '@anthropic-ai/sdk 1.14.0',
  },
  {
    vendor: 'claude',
    from: 406,
    until: 407,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, efforts: ['low', 'medium', 'high', 'max'], isAdaptive: true } }),
    source: '@anthropic-ai/sdk 1.14.0',
  },
  {
    vendor: 'claude',
    from: 407,
    until: Infinity,
    targets: claudes,
    change: ({ reasoning, sampling }) => ({
      reasoning: { ...reasoning, efforts: ['low', 'medium', 'high', 'xhigh', 'max'], hasBudget: false, isAdaptive: true, off: 'disabled' },
      sampling: { ...sampling, isFixed: 'always' },
    }),
    source: 'NousResearch/hermes-agent#11137, UKGovernmentBEIS/inspect_ai#3721',
  },
  {
    vendor: 'claude',
    from: 407,
    until: 500,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, off: 'leave' } }),
    source: 'NousResearch/hermes-agent#11137',
  },
  {
    vendor: 'claude',
    from: 500,
    until: Infinity,
    lines: /fable|mythos/,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, off: 'never', forcesTools: 'never' } }),
    source: 'docs.claude.com, extended thinking',
  },
  {
    vendor: 'claude',
    from: 505,
    until: Infinity,
    lines: /opus|sonnet/,
    targets: claudes,
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, off: 'never', forcesTools: 'never' } }),
    source: 'docs.claude.com, extended thinking',
  },
  {
    vendor: 'gemini',
    from: 0,
    until: 300,
    change: () => ({ thoughts: 'sent' }),
    targets: ['gemini', 'vertex', 'compatible'],
    source: 'ai.google.dev/gemini-api/docs/thought-signatures',
  },
  {
    vendor: 'gemini',
    from: 300,
    until: Infinity,
    change: () => ({ thoughts: 'demanded' }),
    targets: ['gemini', 'vertex', 'compatible'],
    source: 'ai.google.dev/gemini-api/docs/thought-signatures',
  },
  {
    vendor: 'nova',
    from: 0,
    until: Infinity,
    targets: ['converse'],
    // A hyphen makes calls fail (SEMOSS/Semoss#2892).
    change: ({ schema, reasoning }) => ({
      names: { pattern: /^[a-zA-Z][a-zA-Z0-9_]{0,63}$/, forbidden: /[^a-zA-Z0-9_]/g, max: 64 },
      schema: { ...schema, rootDrops: ['$schema', 'definitions', '$defs', 'additionalProperties', 'title', 'description', '$id'] },
      reasoning: { ...reasoning, history: 'none', hasBudget: false },
    }),
    source: 'zed-industries/zed#28521',
  },
  ...(['titan', 'llama', 'mistral', 'command', 'deepseek', 'kimi', 'glm', 'minimax', 'qwen', 'gpt', 'grok'] as const).map((vendor): FamilyRow => ({
    vendor,
    from: 0,
    until: Infinity,
    targets: ['converse'],
    change: ({ reasoning }) => ({ reasoning: { ...reasoning, history: 'none', hasBudget: false }, cache: { marker: 'none', max: 0, hasTtl: false } }),
    source: 'docs.aws.amazon.com/bedrock, prompt caching; BerriAI/litellm 1.110.2',
  })),
]
