import { readCompletionsReply, writeCompletionsReply } from '../formats/completions/reply.ts'
import { CompletionsWriter } from '../formats/completions/events.ts'
import { readCompletionsRequest } from '../formats/completions/request.ts'
import { CompletionsReader } from '../formats/completions/steps.ts'
import { writeCompletionsRequest } from '../formats/completions/write.ts'
import { readConverseReply } from '../formats/converse/reply.ts'
import { ConverseReader } from '../formats/converse/steps.ts'
import { writeConverseRequest } from '../formats/converse/write.ts'
import { GeminiWriter } from '../formats/gemini/events.ts'
import { writeGeminiReply } from '../formats/gemini/reply.ts'
import { readGeminiRequest } from '../formats/gemini/request.ts'
import { MessagesWriter } from '../formats/messages/events.ts'
import { readMessagesReply, writeMessagesReply } from '../formats/messages/reply.ts'
import { readMessagesRequest } from '../formats/messages/request.ts'
import { MessagesReader } from '../formats/messages/steps.ts'
import { writeMessagesRequest } from '../formats/messages/write.ts'
import type { Chat, Reply } from '../common/neutral.ts'
import { inside } from '../common/read.ts'
import { ResponsesWriter } from '../formats/responses/events.ts'
import { writeResponsesReply } from '../formats/responses/reply.ts'
import { readResponsesRequest } from '../formats/responses/request.ts'
import type { ChatFormat, Conversion, ConvertedRequest, JsonObject, RequestContext, ResponseContext, UpstreamFormat } from '../common/types.ts'
import { FormatError } from '../common/types.ts'
import { UniqueIds } from '../common/unique-ids.ts'
import { fitChat } from '../rules/fit.ts'
import { rulesOf, targetOfFormat } from '../rules/index.ts'
import type { TargetRules } from '../rules/types.ts'
import { countUnknown } from '../stream/facts.ts'
import type { StepWriter } from '../stream/steps.ts'
import { readFrames, readSse, TranslatedStream, type StepSource } from '../stream/translated.ts'
import { translateError } from './errors.ts'
import { readFacts } from './facts.ts'

/** The client side of a translation. */
interface ClientSide {
  readRequest(body: JsonObject): Chat
  writeReply(reply: Reply, context: ResponseContext): JsonObject
  writeStream(context: ResponseContext, to: UpstreamFormat): StepWriter
}

/** The upstream side of a translation. */
interface UpstreamSide {
  writeRequest(chat: Chat, context: RequestContext, rules: TargetRules): ConvertedRequest
  readReply(body: JsonObject, client: ChatFormat, context: ResponseContext): Reply
  readStream(context: ResponseContext, maxEventBytes?: number): StepSource
}

const clients: Readonly<Record<ChatFormat, ClientSide>> = {
  completions: {
    readRequest: readCompletionsRequest,
    writeReply: writeCompletionsReply,
    writeStream: (context, to) =>
      new CompletionsWriter(context, {
        isRoleFirst: to === 'converse',
        id: context.header('x-amzn-requestid') ?? `chatcmpl-${context.hex(24)}`,
      }),
  },
  messages: { readRequest: readMessagesRequest, writeReply: writeMessagesReply, writeStream: (context) => new MessagesWriter(context) },
  responses: {
    readRequest: readResponsesRequest,
    writeReply: writeResponsesReply,
    writeStream: (context, to) => new ResponsesWriter(context, to === 'converse'),
  },
  gemini: { readRequest: readGeminiRequest, writeReply: writeGeminiReply, writeStream: (context) => new GeminiWriter(context) },
}

const upstreams = {
  completions: {
    writeRequest: writeCompletionsRequest,
    readReply: readCompletionsReply,
    readStream: () => readSse(new CompletionsReader(false)),
  },
  messages: { writeRequest: writeMessagesRequest, readReply: readMessagesReply, readStream: () => readSse(new MessagesReader()) },
  converse: {
    writeRequest: writeConverseRequest,
    readReply: readConverseReply,
    readStream: (_context, maxEventBytes) => readFrames(new ConverseReader(), maxEventBytes),
  },
} satisfies Partial<Record<UpstreamFormat, UpstreamSide>>

/** A translation between two chat formats. */
export function translateChat(from: ChatFormat, to: keyof typeof upstreams): Conversion {
  const client = clients[from]
  const upstream: UpstreamSide = upstreams[to]
  return {
    from,
    to,
    isNative: false,
    request(body, context) {
      const rules = rulesOf(context.target ?? targetOfFormat[to], context.model, context.capabilities, context.server)
      const { chat, toolNames } = fitChat(client.readRequest(body), rules)
      const converted = upstream.writeRequest(chat, context, rules)
      return { ...converted, memo: { ...converted.memo, toolNames } }
    },
    response(body, context) {
      if (Object.keys(inside(body)).length === 0) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      const reply = restoreCalls(upstream.readReply(inside(body), from, context), context.memo.toolNames)
      const written = client.writeReply(reply, context)
      const facts = { ...readFacts(from, written, reply.usage), serviceTier: reply.serviceTier }
      for (const kind of reply.unknown ?? []) countUnknown(facts, kind)
      return { body: written, facts }
    },
    error: (status, body) => translateError(from, false, status, body),
    stream: (context, options) =>
      new TranslatedStream(upstream.readStream(context, options?.maxEventBytes), client.writeStream(context, to), context.memo.toolNames, options),
  }
}

/** A response with the client's names of tools, and an id of its own for each call. */
function restoreCalls(reply: Reply, names: ReadonlyMap<string, string>): Reply {
  const ids = new UniqueIds()
  const blocks = reply.blocks.map((block) => (block.type === 'toolUse' ? { ...block, id: ids.of(block.id), name: names.get(block.name) ?? block.name } : block))
  return { ...reply, blocks }
}
