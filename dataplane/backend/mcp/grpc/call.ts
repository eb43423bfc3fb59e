import { toBinary, type DescMessage } from '@bufbuild/protobuf'
import { isBareValue, type GrpcTool } from '#api/grpc-tools/index.ts'
import { isRawNumber, printJsonInSteps, verbatimNumbers } from '#api/json/index.ts'
import { encodeFrame } from '../../../net/callout/frames.ts'
import { isObject } from '../message/json.ts'
import { runCooperatively, type Cooperative } from '../../../runtime/cooperative.ts'
import type { GrpcTools } from '../target/grpc-source.ts'
import { decodeInSteps, fromJsonInSteps, toJsonInSteps, type ConvertOptions } from './steps.ts'
import { GrpcStatusError, type GrpcCaller } from './unary.ts'

/** Largest request and response, bytes. */
const MAX_MESSAGE_BYTES = 256 * 1024
const MAX_ERROR_CHARS = 2000
/** Names of grpc-status. */
const STATUS_NAMES = (
  'OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED ' +
  'FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED'
).split(' ')

/**
 * Calls a method. Returns its result in JSON; wrong arguments and errors of the server are results with `isError`. Rejects as `call` and `run` do, which runs
 * conversions in slices.
 */
export async function callMethod(
  call: GrpcCaller,
  tool: GrpcTool,
  { registry }: GrpcTools,
  args: unknown,
  run: typeof runCooperatively = runCooperatively,
): Promise<string> {
  const { name, method } = tool
  const options = registry === undefined ? {} : { registry }
  const request = await run(requestOf(method.input, args ?? {}, options))
  if (typeof request === 'string') return errorResult(`Invalid arguments: ${request}`)
  try {
    const messages = await call(`/${method.parent.typeName}/${method.name}`, encodeFrame(request), {
      limitBytes: MAX_MESSAGE_BYTES,
      message: { method: 'tools/call', name },
      isRepeatable: isReadOnly(method.idempotency),
    })
    const [message] = messages
    if (message === undefined || messages.length > 1) return errorResult(`The server sent ${messages.length} messages, one is expected`)
    return await run(readResult(tool, options, message))
  } catch (error) {
    if (error instanceof GrpcStatusError) return errorResult(`${STATUS_NAMES[error.status] ?? `grpc-status ${error.status}`}: ${cut(error.message)}`)
    // Anything else means that there was no response, which is handled as that of an MCP server.
    throw error
  }
}

/** The message of the arguments, or what is wrong with them. */
function* requestOf(input: DescMessage, args: unknown, options: ConvertOptions): Cooperative<Uint8Array | string> {
  const text = (yield* printJsonInSteps(args)).join('')
  if (text.length > MAX_MESSAGE_BYTES) return `they are larger than ${MAX_MESSAGE_BYTES} bytes`
  const prepare = verbatimNumbers.mayNeedCare(text) ? withPlainNumbers : (part: unknown) => part
  yield
  try {
    return toBinary(input, yield* fromJsonInSteps(input, messageOf(input, args), prepare, options))
  } catch (error) {
    return cut((error as Error).message)
  }
}

/** The arguments as ProtoJSON of a message. Throws an Error. */
function messageOf(input: DescMessage, args: unknown): unknown {
  if (!isBareValue(input)) return args
  const { value, ...others } = isObject(args) ? args : {}
  const [other] = Object.keys(others)
  if (other !== undefined) throw new Error(`arguments.${other} is unknown: the only argument is value`)
  if (value === undefined) throw new Error('arguments.value is required')
  return value
}

/** Numbers that JSON keeps as text become numbers again; integers that a double does not hold become strings, as ProtoJSON has those of 64 bits. */
function withPlainNumbers(value: unknown): unknown {
  if (isRawNumber(value)) {
    const number = Number(value.rawJSON)
    return /^-?\d+$/.test(value.rawJSON) && !Number.isSafeInteger(number) ? value.rawJSON : number
  }
  if (Array.isArray(value)) return value.map(withPlainNumbers)
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, child]) => [name, withPlainNumbers(child)])) : value
}

function* readResult({ method }: GrpcTool, options: ConvertOptions, bytes: Buffer): Cooperative<string> {
  let value: unknown
  try {
    const large = new Set<unknown>()
    const message = yield* decodeInSteps(method.output, bytes, large)
    value = yield* toJsonInSteps(method.output, message, large, options)
  } catch (error) {
    return errorResult(`The response does not match its descriptor: ${cut((error as Error).message)}`)
  }
  const text = yield* printJsonInSteps(value)
  const quoted: string[] = []
  for (const part of text) {
    quoted.push(JSON.stringify(part).slice(1, -1))
    yield
  }
  const content = `{"content":[{"type":"text","text":"${quoted.join('')}"}]`
  yield
  // Structured content is an object.
  return `${content}${isObject(value) ? `,"structuredContent":${text.join('')}` : ''}}`
}

/** MethodOptions.IdempotencyLevel: NO_SIDE_EFFECTS or IDEMPOTENT. */
const isReadOnly = (level: number): boolean => level === 1 || level === 2

const cut = (text: string): string => (text.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS).toWellFormed()}...` : text)
const errorResult = (text: string): string => JSON.stringify({ content: [{ type: 'text', text }], isError: true })
