"""A gRPC server on grpc-core, with reflection: python grpc_server.py PORT"""

import sys
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection

file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
message = file.message_type.add(name="Text")
message.field.add(name="text", number=1, type=9, label=1)
service = file.service.add(name="Shop")
service.method.add(name="Echo", input_type=".shop.Text", output_type=".shop.Text")
service.method.add(name="Fail", input_type=".shop.Text", output_type=".shop.Text")
pool = descriptor_pool.Default()
pool.Add(file)
Text = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Text"))


def echo(request, context):
    # The deadline is that of the header grpc-timeout.
    return Text(text=f"{request.text} within {round(context.time_remaining())} s")


def fail(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, f"no {request.text}")


def handler(method):
    return grpc.unary_unary_rpc_method_handler(method, request_deserializer=Text.FromString, response_serializer=Text.SerializeToString)


server = grpc.server(futures.ThreadPoolExecutor())
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("shop.Shop", {"Echo": handler(echo), "Fail": handler(fail)})])
reflection.enable_server_reflection(["shop.Shop", reflection.SERVICE_NAME], server)
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
server.wait_for_termination()
