"""A gRPC server: /demo.Echo/Say gives back what it is given, and the health service says SERVING. Needs grpcio and grpcio-health-checking."""

from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


class Echo(grpc.GenericRpcHandler):
    """One method on plain bytes, so that nothing has to be generated."""

    def service(self, details):
        if details.method != "/demo.Echo/Say":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    server.add_generic_rpc_handlers([Echo()])
    status = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    # An empty name is the server as a whole.
    status.set("", health_pb2.HealthCheckResponse.SERVING)
    server.add_insecure_port("0.0.0.0:50051")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
