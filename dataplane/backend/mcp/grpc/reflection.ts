import type { FileDescriptorProto } from '@bufbuild/protobuf/wkt'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { DescriptorError, isOffered, isWellKnown, linkFiles, MAX_FILES, readDescriptor } from '#api/grpc-tools/index.ts'
import { encodeFrame } from '../../../net/callout/frames.ts'
import type { Reflected } from '../target/grpc-source.ts'
import { GrpcStatusError, type GrpcCaller } from './unary.ts'

/** Revisions of the reflection service, whose messages are equal; servers have one or both. */
const SERVICES = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'] as const
const UNIMPLEMENTED = 12
/** Largest answer to all questions of a round, bytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const MAX_SERVICES = 200
/** Rounds of questions for imports. A server usually sends them with the files that import them. */
const MAX_ROUNDS = 16

/** Fields of ServerReflectionRequest and ServerReflectionResponse (grpc/reflection/v1/reflection.proto). */
const FILE_BY_FILENAME = 3
const FILE_CONTAINING_SYMBOL = 4
const LIST_SERVICES = 7
const FILE_DESCRIPTOR_RESPONSE = 4
const LIST_SERVICES_RESPONSE = 6
const ERROR_RESPONSE = 7

type Question = readonly [field: number, value: string]

interface Answers {
  readonly services: string[]
  readonly files: Buffer[]
  readonly errors: string[]
}

/**
 * Asks a server for the descriptors of its services. Services whose descriptors are not complete are left out. Rejects with a DescriptorError if all are, with
 * a GrpcStatusError, or as `call` does.
 */
export async function readReflection(call: GrpcCaller): Promise<Reflected> {
  const [service, { services }] = await findService(call)
  const ask = (questions: readonly Question[]) => askServer(call, service, questions)
  const offered = services.filter(isOffered)
  if (offered.length > MAX_SERVICES) throw new DescriptorError(`the server has ${offered.length} services, at most ${MAX_SERVICES} are supported`)
  const files = new Map<string, FileDescriptorProto>()
  const errors: string[] = []
  const asked = new Set<string>()
  let questions = offered.map((name): Question => [FILE_CONTAINING_SYMBOL, name])
  for (let round = 0; questions.length > 0; round++) {
    if (round === MAX_ROUNDS || files.size > MAX_FILES) throw new DescriptorError('the files of the server import too many others')
    const answers = await ask(questions)
    for (const [, name] of questions) asked.add(name)
    errors.push(...answers.errors)
    for (const bytes of answers.files) {
      const file = readDescriptor(bytes)
      files.set(file.name, file)
    }
    const imported = new Set([...files.values()].flatMap(({ dependency }) => dependency).filter((name) => !files.has(name) && !isWellKnown(name)))
    questions = [...imported].filter((name) => !asked.has(name)).map((name): Question => [FILE_BY_FILENAME, name])
  }
  removeIncomplete(files)
  const described = new Set([...files.values()].flatMap((file) => file.service.map(({ name }) => (file.package === '' ? name : `${file.package}.${name}`))))
  const missing = offered.filter((name) => !described.has(name))
  const [cause] = errors
  const error = cause === undefined ? 'the reflection service sent no descriptor' : `the reflection service answered ${JSON.stringify(cause.slice(0, 200))}`
  if (missing.length > 0 && missing.length === offered.length) throw new DescriptorError(error)
  return { registry: linkFiles([...files.values()]), missing, error }
}

/** Removes files whose imports, direct or not, are not all there. */
function removeIncomplete(files: Map<string, FileDescriptorProto>): void {
  const importers = new Map<string, string[]>()
  for (const { name, dependency } of files.values())
    for (const imported of dependency) {
      const known = importers.get(imported)
      if (known === undefined) importers.set(imported, [name])
      else known.push(name)
    }
  const lost = [...importers.keys()].filter((name) => !files.has(name) && !isWellKnown(name))
  for (const name of lost) lost.push(...(importers.get(name) ?? []).filter((importer) => files.delete(importer)))
}

async function findService(call: GrpcCaller): Promise<[service: string, Answers]> {
  const [current, older] = SERVICES
  const question: Question = [LIST_SERVICES, '*']
  try {
    return [current, await askServer(call, current, [question])]
  } catch (error) {
    if (!(error instanceof GrpcStatusError) || error.status !== UNIMPLEMENTED) throw error
    return [older, await askServer(call, older, [question])]
  }
}

/** The method has streams in both directions. All questions are sent at once, and the answers are read when the stream has ended. */
async function askServer(call: GrpcCaller, service: string, questions: readonly Question[]): Promise<Answers> {
  const frames = questions.map(([field, value]) => encodeFrame(new BinaryWriter().tag(field, WireType.LengthDelimited).string(value).finish()))
  const answers: Answers = { services: [], files: [], errors: [] }
  const messages = await call(`/${service}/ServerReflectionInfo`, Buffer.concat(frames), { limitBytes: MAX_ANSWER_BYTES, isRepeatable: true })
  for (const message of messages) readMessage(message, (field, bytes) => readAnswer(answers, field, bytes))
  return answers
}

function readAnswer({ services, files, errors }: Answers, field: number, bytes: Buffer): void {
  if (field === FILE_DESCRIPTOR_RESPONSE) readMessage(bytes, (number, file) => void (number === 1 && files.push(file)))
  else if (field === LIST_SERVICES_RESPONSE)
    readMessage(bytes, (number, service) => {
      if (number === 1) readMessage(service, (at, name) => void (at === 1 && services.push(name.toString())))
    })
  else if (field === ERROR_RESPONSE) readMessage(bytes, (number, text) => void (number === 2 && errors.push(text.toString())))
}

/** Calls `onField` for each field that has a length. */
function readMessage(bytes: Buffer, onField: (field: number, bytes: Buffer) => void): void {
  try {
    const reader = new BinaryReader(bytes)
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag()
      if (type === WireType.LengthDelimited) onField(field, Buffer.from(reader.bytes()))
      else reader.skip(type, field)
    }
  } catch (error) {
    if (error instanceof DescriptorError) throw error
    throw new DescriptorError('the answer of the reflection service is no message of Protobuf', { cause: error })
  }
}
