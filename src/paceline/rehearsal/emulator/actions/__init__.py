"""The actions of the EC2 API that moto has not, or has differently, by what they are about."""
