import { boolean, choice, object, ref, type Definitions } from '../../schema.ts'
import { whenProtecting } from '../shared.ts'

const bodyMode = (whose: string) =>
  choice(
    ['None', 'Buffered', 'BufferedPartial', 'FullDuplexStreamed'],
    `How the ${whose} body is sent to the processor. None: not at all. Buffered: as a whole, up to maxBufferSize; a longer one is an error. BufferedPartial: its beginning, up to maxBufferSize; the rest is forwarded unchanged. FullDuplexStreamed: in chunks; the processor returns the body in chunks.`,
    { default: 'FullDuplexStreamed' },
  )
const sendMode = (what: string) => choice(['Send', 'Skip'], `Whether to send the ${what} to the processor.`, { default: 'Send' })

export const extProcDefinitions: Definitions = {
  ExtProc: object(
    "External processing: a gRPC service (Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`) sees, and may change, headers, bodies and trailers of request and response. If it fails, the request fails with 500 unless failureMode is FailOpen.",
    {
      backendRef: ref('BackendObjectReference', 'The processor: a Service or a ProxyBackend.'),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'Handling of a failure of the processor. FailClosed responds with 500; FailOpen continues without the processor, unless part of the request body was already sent to it. Later failures, and those of the response, always result in 500.',
        { default: 'FailClosed' },
      ),
      messageTimeout: ref('Duration', 'Timeout for the response of the processor to each message. Not set: the timeout of the request.'),
      processingOptions: ref('ExtProcProcessing'),
      when: whenProtecting,
    },
    ['backendRef'],
  ),
  ExtProcProcessing: object('Parts of request and response that are sent to the processor.', {
    requestHeaderMode: sendMode('headers of the request'),
    requestBodyMode: bodyMode("request's"),
    requestTrailerMode: sendMode('trailers of the request; they are always sent with FullDuplexStreamed bodies'),
    responseHeaderMode: sendMode('headers of the response'),
    responseBodyMode: bodyMode("response's"),
    responseTrailerMode: sendMode('trailers of the response; they are always sent with FullDuplexStreamed bodies'),
    allowModeOverride: boolean('Whether the processor, in its responses to headers, may override the modes of bodies and trailers that follow.', {
      default: false,
    }),
  }),
}
